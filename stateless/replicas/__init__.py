"""Searchers of a shard: one calls a content node, the other one several replicas."""
