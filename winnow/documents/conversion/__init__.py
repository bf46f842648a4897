"""Conversion of files in worker processes with limits of time, memory and size."""
