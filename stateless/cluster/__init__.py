"""The content nodes that this front knows: found, looked at, and formed into one index."""
