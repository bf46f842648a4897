"""Characters and tokens."""
