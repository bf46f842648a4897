"""`winnow read`: reads the caller's own files."""
