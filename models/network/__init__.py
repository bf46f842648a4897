"""Networks of the encoder and the readers, their weights, and their export as graphs."""
