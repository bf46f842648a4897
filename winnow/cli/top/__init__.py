"""`winnow top`: the state of a cluster on a terminal, polled again and again."""
