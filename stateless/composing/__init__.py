"""Puts the parts of a front together. Only a `__main__` imports it."""
