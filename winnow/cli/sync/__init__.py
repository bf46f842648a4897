"""`winnow sync`."""
