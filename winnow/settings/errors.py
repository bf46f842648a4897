"""The error of settings. It needs no pydantic, so commands start without it."""

from winnow.errors import WinnowError


class SettingsError(WinnowError):
    """A setting has an invalid value or an unknown name, or is missing."""
