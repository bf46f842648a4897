"""The default refresh interval of heads, in a module that settings can import quickly."""

REFRESH_SECONDS = 2.0
"""Default interval between checks for a new version of a head."""
