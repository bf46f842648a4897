"""Chooses the index of a request by its name."""
