"""What a trained network is worth, and the weights that follow from it."""
