"""Lists, looks up and counts the passages of a shard, and lists their documents."""
