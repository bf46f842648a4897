"""A shard that takes writes: the durable log of them, and what is served of base and log."""
