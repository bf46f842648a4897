"""A content node: one shard of passages, its index and its reader. Also the builder of shards."""
