"""How errors and log lines quote what somebody else wrote.

Whatever a caller sends comes back to it and goes into logs: a text of megabytes must not, nor line
breaks that look like log lines of their own.
"""

import re

MOST = 100
"""Characters that are quoted of a text."""
_MOST_OF_NAME = 24


def shortened(text: str) -> str:
    """The beginning of a text, on one line, in characters that can be printed."""
    start = "".join(each if each.isprintable() else "?" for each in text[:MOST])
    return start if len(text) <= MOST else f"{start}… ({len(text)} characters)"


def quoted(text: str) -> str:
    """The same, in quotes."""
    return f"'{shortened(text)}'"


def briefly(value: str) -> str:
    """Quoted, in a few bytes: what travels in headers takes three for each that is not ASCII."""
    return quoted("".join(each if each.isascii() else "?" for each in value[:_MOST_OF_NAME]))


def shown(url: str) -> str:
    """A URL without user and password, for errors and logs."""
    return re.sub("//[^/]*@", "//", url)
