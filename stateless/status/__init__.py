"""Reports the state of a front and its cluster to operators."""
