"""Calls to shards: over gRPC to one content node, to one of several replicas, or joint calls."""
