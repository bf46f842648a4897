"""Measurement of trained networks, and the weights that are fitted to the measurements."""
