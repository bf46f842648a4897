"""Discovers and polls content nodes, and forms them into one index."""
