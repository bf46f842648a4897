"""Snapshots of an index: taken while it is served, restored anywhere, at any fsspec URL."""
