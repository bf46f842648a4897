"""Answers questions: validates, admits, encodes, searches and merges."""
