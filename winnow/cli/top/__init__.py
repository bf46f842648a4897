"""`winnow top`: shows the live state of a cluster at a terminal."""
