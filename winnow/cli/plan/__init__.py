"""`winnow plan`: plans the machines that an index needs."""
