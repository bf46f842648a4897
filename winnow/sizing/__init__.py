"""What the parts of a cluster cost on some hardware: the units that sizing reckons with."""
