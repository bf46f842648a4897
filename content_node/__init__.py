"""A content node, which serves a shard of passages with a reader. Also builds shards."""
