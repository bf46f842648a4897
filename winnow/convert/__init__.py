"""Converts domain values to messages and back: the only package that knows both."""
