"""Puts the shards of a process together: a content node's one, or all of an index."""
