"""Composes a front node and the shards of an index in one process."""
