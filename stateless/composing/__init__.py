"""Composes the parts of a front. Only a `__main__` imports it."""
