"""Moves shards that nobody uses to the store of snapshots, and brings them back (decision 41)."""
