"""Measures trained networks, and fits the weights of the final score to the measurements."""
