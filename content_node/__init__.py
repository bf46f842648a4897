"""The content node: retrieves from shards and reads passages. Also builds and copies shards."""
