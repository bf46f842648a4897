"""What the parts of a cluster cost on this machine."""
