"""Formats of files, each converted to a document by one module."""
