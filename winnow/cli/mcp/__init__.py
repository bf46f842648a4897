"""`winnow mcp`."""
