"""`winnow top`: a cluster as it is now, on a terminal."""
