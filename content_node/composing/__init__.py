"""Composes the shards of a process: those of a content node, or all shards of an index."""
