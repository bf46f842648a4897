"""Trains encoders and readers: examples, losses, and the training loop."""
