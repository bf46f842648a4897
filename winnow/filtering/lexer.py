"""The text of a filter as tokens. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from winnow.errors import InvalidRequestError, Violation
from winnow.filtering.writing import WORD
from winnow.quoting import quoted

FIELD = "filter"
"""The field of a request that holds filters, as violations name it."""
_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\["'\\])*"|'(?:[^'\\]|\\["'\\])*')"""
    rf"|(?P<sign>[=<>!]+|[(),])|(?P<word>{WORD.pattern})"
)
_ESCAPED = re.compile(r"""\\(["'\\])""")


class Shape(Enum):
    """What a token is."""

    STRING = "string"
    """In quotes."""
    SIGN = "sign"
    """An operator, a parenthesis or a comma."""
    WORD = "word"
    """A keyword, a name or a number."""
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a filter."""

    shape: Shape
    text: str
    """Of a string without quotes and backslashes."""
    at: int
    """Its first character, counted from 1."""

    def __str__(self) -> str:
        return "the end" if self.shape is Shape.END else quoted(self.text)


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a filter; the last one is the end.

    Raises:
        InvalidRequestError: there is something that is no token, such as half of a string.

    """
    place = _skipped(text, 0)
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise wrong(_why(text[place], place + 1))
        yield _token(found)
        place = _skipped(text, found.end())
    yield Token(Shape.END, "", len(text) + 1)


def wrong(description: str) -> InvalidRequestError:
    """The error for a filter that breaks a rule."""
    return InvalidRequestError(Violation(FIELD, description))


def _token(found: re.Match[str]) -> Token:
    shape, text = Shape(found.lastgroup), found[0]
    if shape is Shape.STRING:
        text = _ESCAPED.sub(r"\1", text[1:-1])
    return Token(shape, text, found.start() + 1)


def _skipped(text: str, place: int) -> int:
    """The next place that is not white space."""
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _why(first: str, at: int) -> str:
    if first == "\\":
        return f"a backslash stands outside of quotes at character {at}"
    return (
        f"the string at character {at} does not end: close it with {first}, and write \\\\ for a "
        f"backslash and \\{first} for a quote in it"
    )
