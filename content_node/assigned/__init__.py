"""Follows the assignment of shards to nodes: opens, receives and closes shards of this node."""
