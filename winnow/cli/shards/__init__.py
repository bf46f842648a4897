"""`winnow shards`: lists shards with their nodes, and moves, splits and spreads shards."""
