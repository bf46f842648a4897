"""Metrics, logs, traces and progress bars."""
