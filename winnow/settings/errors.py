"""The error for invalid settings.

This module does not import pydantic, so that commands start quickly.
"""

from winnow.errors import WinnowError


class SettingsError(WinnowError):
    """A setting has an invalid value or an unknown name, or is missing."""
