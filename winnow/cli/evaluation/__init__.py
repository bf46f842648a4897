"""`winnow evaluate`: how right and how fast the answers of a running system are."""
