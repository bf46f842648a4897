"""Journals: durable logs of writes that all replicas of a shard apply in the same order."""
