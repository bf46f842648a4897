"""The error for invalid settings.

This module does not import pydantic, so that commands start quickly.
"""

import re

from winnow.errors import WinnowError

_PARSER_DETAILS = re.compile(r", unable to (?:parse string as an? \w+|interpret input)")


class SettingsError(WinnowError):
    """A setting has an invalid value or an unknown name, or is missing."""


def without_parser_details(message: str) -> str:
    """Returns pydantic's message without the part that repeats the type: "unable to parse …"."""
    return _PARSER_DETAILS.sub("", message)
