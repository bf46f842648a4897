"""Building an index offline: rows, tokens, vectors, shards."""
