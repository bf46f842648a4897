"""Traces: the time that each process spent on one request."""
