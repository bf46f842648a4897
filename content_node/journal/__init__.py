"""A shard that follows a journal: what is written to it is published first, and then applied."""
