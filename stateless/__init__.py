"""The front node: takes questions, asks the shards, merges their answers. No index, no disk."""
