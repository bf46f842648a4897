"""`winnow tenants`: list, usage, export and deletion of the tenants of a running index."""
