"""`winnow pareto`: measures the accuracy and latency of a grid of operating points."""
