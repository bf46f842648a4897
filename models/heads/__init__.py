"""Training of heads: small models on the states of a fixed encoder."""
