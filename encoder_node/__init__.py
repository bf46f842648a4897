"""The encoder node, which encodes texts for front nodes."""
