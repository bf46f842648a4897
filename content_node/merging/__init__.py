"""The next generation of a shard: built of base and log in another process, and swapped in."""
