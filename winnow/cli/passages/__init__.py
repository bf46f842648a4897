"""`winnow search` and `winnow passages`."""
