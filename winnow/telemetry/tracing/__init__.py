"""Traces: where the time of one question went, over every process that worked for it."""
