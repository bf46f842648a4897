"""`winnow keys`: the file of keys of front nodes."""
