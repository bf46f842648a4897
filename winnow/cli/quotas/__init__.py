"""`winnow quotas`."""
