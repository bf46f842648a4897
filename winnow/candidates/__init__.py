"""Which candidates of shards may be among the best of all shards."""
