"""Puts shards and front of one process together."""
