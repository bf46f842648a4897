"""Reads, reranks and highlights texts that callers send, without an index."""
