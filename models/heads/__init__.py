"""Trains heads, which are small models on the states of a fixed encoder."""
