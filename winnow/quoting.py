"""How messages quote what callers wrote, and how they count things.

What a caller sends comes back to it and goes into logs. A quote is short, so that a text of
megabytes does not, and has no line breaks, which would look like log lines.
"""

import re

MOST = 100
"""Characters that are quoted of a text."""
_MOST_OF_NAME = 24


def shortened(text: str) -> str:
    """The beginning of a text, on one line, in printable characters."""
    start = "".join(each if each.isprintable() else "?" for each in text[:MOST])
    return start if len(text) <= MOST else f"{start}… ({len(text)} characters)"


def quoted(text: str) -> str:
    """The same, in quotes."""
    return f"'{shortened(text)}'"


def briefly(value: str) -> str:
    """A short quote for headers, in which each character that is not ASCII takes three bytes."""
    return quoted("".join(each if each.isascii() else "?" for each in value[:_MOST_OF_NAME]))


def shown(url: str) -> str:
    """A URL without user and password, for errors and logs."""
    return re.sub("//[^/]*@", "//", url)


def many(count: int, noun: str) -> str:
    """A number of things: 1 shard, 2 shards, 1,000 shards."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def are(count: int, noun: str) -> str:
    """The beginning of a sentence: 1 shard is, 2 shards are."""
    return f"{many(count, noun)} {'is' if count == 1 else 'are'}"


def were(count: int, noun: str) -> str:
    """The same of what is past: 1 shard was, 2 shards were."""
    return f"{many(count, noun)} {'was' if count == 1 else 'were'}"
