"""The content nodes that this front knows: found, asked what they serve, formed into one index."""
