"""Merges the base and the log of a shard into a new generation in a child process; serves it."""
