"""A content node, which serves shards of passages with a reader. Also builds shards."""
