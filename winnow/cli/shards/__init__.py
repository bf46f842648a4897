"""`winnow shards`: which nodes have which shards, and moves of shards between nodes."""
