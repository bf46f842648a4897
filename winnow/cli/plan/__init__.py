"""`winnow plan`: the machines that an index needs."""
