"""The front node: takes questions, calls the shards and merges their answers. It stores nothing."""
