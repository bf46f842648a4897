"""Precomputed states of passages: the output of a split reader's lower layers."""
