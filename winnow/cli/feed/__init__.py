"""`winnow feed`: stores the passages of a file in a running index, or deletes them."""
