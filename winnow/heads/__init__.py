"""Heads: small models on the token states of a shared encoder, as artefacts and at work."""
