"""Composes the shards of a content node, or all shards of an index in one process."""
