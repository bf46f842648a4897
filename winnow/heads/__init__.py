"""Heads: small models that classify texts from the token states of a shared encoder."""
