"""The networks: their shape, their weights, their graphs."""
