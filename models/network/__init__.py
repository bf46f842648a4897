"""The encoder and the readers: networks, weights and exported graphs."""
