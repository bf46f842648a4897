"""A shard that takes writes: its durable log, and the view that combines base and log."""
