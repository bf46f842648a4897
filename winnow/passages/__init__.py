"""Passages before they are indexed: out of files, checked, cut, and encoded."""
