"""`winnow up` and `winnow demo`: an index served on this machine, by one process or by a front node
and content nodes.
"""
