"""`winnow up` and `winnow demo`: serve an index on this machine, in one process or in several."""
