"""Builds and verifies an index offline: rows, tokens, vectors, shards."""
