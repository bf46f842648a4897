"""Metrics, logs, traces and progress bars: what operators see of a process."""
