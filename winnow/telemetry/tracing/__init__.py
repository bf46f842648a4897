"""Traces: the spans that each process records for one request."""
