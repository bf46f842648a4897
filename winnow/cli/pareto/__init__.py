"""`winnow pareto`: accuracy against latency of a grid of operating points."""
