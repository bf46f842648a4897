"""Shards as the front searches them: one behind gRPC, and one with several replicas."""
