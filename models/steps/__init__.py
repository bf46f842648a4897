"""Steps from data and pretrained weights to a bundle. Each step writes its result to a file."""
