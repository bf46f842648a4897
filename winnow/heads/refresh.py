"""The default of how often heads are checked for new versions; imports nothing, for settings."""

REFRESH_SECONDS = 2.0
"""Default interval between checks for a new version of a head."""
