"""Passages before indexing: parsed from files, validated, cut, tokenised and encoded."""
