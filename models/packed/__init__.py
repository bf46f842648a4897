"""Trains on a GPU from a pack, which contains all passages and questions as token ids."""
