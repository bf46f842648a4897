"""Counts how rare words are in an index that changes, by adding up the counts of its shards."""
