"""`winnow up` and `winnow demo`: a whole cluster on this machine, one process per node."""
