"""Formats quotes of callers' texts, and counted nouns, for messages.

Quotes appear in responses and logs. So they are short, and have no line breaks, which could forge
log lines.
"""

import re

MAX_QUOTED = 100
"""Maximum number of characters of a text that are quoted."""
_MAX_BRIEF = 24
"""Maximum number of characters of a text that are quoted in a header."""


def shortened(text: str) -> str:
    """Returns the beginning of a text, on one line, in printable characters."""
    start = "".join(each if each.isprintable() else "?" for each in text[:MAX_QUOTED])
    return start if len(text) <= MAX_QUOTED else f"{start}… ({len(text)} characters)"


def quoted(text: str) -> str:
    """Returns the shortened text in quotes."""
    return f"'{shortened(text)}'"


def briefly(value: str) -> str:
    """Returns a short ASCII quote, because headers need three bytes for other characters."""
    return quoted("".join(each if each.isascii() else "?" for each in value[:_MAX_BRIEF]))


def shown(url: str) -> str:
    """Returns a URL without user and password, for errors and logs."""
    return re.sub("//[^/]*@", "//", url)


def many(count: int, noun: str) -> str:
    """Formats a count with its noun: `many(2, "shard")` returns "2 shards"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def are(count: int, noun: str) -> str:
    """Formats a count with noun and verb: `are(1, "shard")` returns "1 shard is"."""
    return f"{many(count, noun)} {'is' if count == 1 else 'are'}"


def were(count: int, noun: str) -> str:
    """Formats a count with noun and past verb: `were(2, "shard")` returns "2 shards were"."""
    return f"{many(count, noun)} {'was' if count == 1 else 'were'}"
