"""Puts the parts of a front together. Only `stateless.__main__` imports it."""
