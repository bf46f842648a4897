"""Composes the parts of a front. Only a `__main__` and `standalone/composing` import it."""
