"""Accuracy against latency: a grid of operating points, measured in one run."""
