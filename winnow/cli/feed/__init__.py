"""`winnow feed`: passages out of a file into a running index."""
