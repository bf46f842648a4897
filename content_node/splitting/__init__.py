"""Splits a served shard in two halves, without encoding a passage again."""
