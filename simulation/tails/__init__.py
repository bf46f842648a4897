"""Predicts the latencies of a cluster: its own code runs, and its work takes measured times."""
