"""A front node with all shards of an index in one process, without gRPC between them."""
