"""Copies a served index to a directory or fsspec URL as a snapshot, and restores snapshots."""
