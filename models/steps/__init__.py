"""The steps from data and pretrained weights to a bundle, each leaving its result on disk."""
