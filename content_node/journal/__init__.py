"""A shard that follows a journal: its writes are published there first, and then applied."""
