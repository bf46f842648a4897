"""Discovers and polls content nodes, and builds a cluster that serves one index from them."""
