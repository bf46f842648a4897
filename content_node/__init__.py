"""A content node: one shard of passages, its index and its reader; and the builder of shards."""
