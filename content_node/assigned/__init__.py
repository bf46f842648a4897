"""Decides how a node follows the assignment of shards, and manages its data directory."""
