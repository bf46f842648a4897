"""Durable logs that several replicas of a shard follow, each in the same order."""
