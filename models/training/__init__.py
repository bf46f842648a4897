"""Training: examples, objectives, and the loop."""
