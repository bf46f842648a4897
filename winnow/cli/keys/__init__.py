"""`winnow keys`: makes, lists and removes the keys of front nodes."""
