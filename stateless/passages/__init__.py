"""Searches, lists, looks up and counts the passages of an index for users."""
