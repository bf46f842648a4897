"""How often heads are checked for new versions, for settings and for loaded heads."""

REFRESH_SECONDS = 2.0
"""Default interval between checks for a new version of a head."""
