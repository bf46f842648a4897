"""Measures what a content node costs on this machine: time, memory and disk space."""
