"""Copies an index into another one with another bundle, which then replaces it."""
