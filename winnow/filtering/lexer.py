"""The text of a filter as tokens. Pure."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from winnow.errors import InvalidRequestError, Violation
from winnow.filtering.writing import WORD
from winnow.quoting import quoted

FIELD = "filter"
"""The field of a request that holds filters, as violations name it."""
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\["'\\])*"|'(?:[^'\\]|\\["'\\])*')"""
    rf"|(?P<sign>[=<>!]+|[(),])|(?P<word>{WORD.pattern})|(?P<end>\Z))"
)
_ESCAPED = re.compile(r"""\\(["'\\])""")


class TokenKind(Enum):
    """What a token is."""

    STRING = "string"
    """In quotes."""
    SIGN = "sign"
    """An operator, a parenthesis or a comma."""
    WORD = "word"
    """A keyword, a name or a number."""
    END = "end"


class Token(NamedTuple):
    """A piece of a filter."""

    shape: TokenKind
    text: str
    """Of a string without quotes and backslashes."""
    at: int
    """Its first character, counted from 1."""
    sign: str
    """Of a keyword or a sign, in small letters; of a string nothing, whatever it says."""

    def __str__(self) -> str:
        return "the end" if self.shape is TokenKind.END else quoted(self.text)


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a filter; the last one is the end.

    Raises:
        InvalidRequestError: there is something that is no token, such as half of a string.

    """
    place, shape = 0, None
    while shape is not TokenKind.END:
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            raise wrong(_why(text, place))
        shape, own, place = TokenKind(found.lastgroup), found[found.lastgroup], found.end()
        at = found.start(found.lastgroup) + 1
        if shape is TokenKind.STRING:
            yield Token(shape, _ESCAPED.sub(r"\1", own[1:-1]), at, "")
        else:
            yield Token(shape, own, at, own.lower())


def wrong(description: str) -> InvalidRequestError:
    """The error for a filter that breaks a rule."""
    return InvalidRequestError(Violation(FIELD, description))


def _why(text: str, place: int) -> str:
    """Why nothing can be read at a place, or behind the white space there."""
    rest = text[place:].lstrip()
    at, first = len(text) - len(rest) + 1, rest[0]
    if first == "\\":
        return f"a backslash stands outside of quotes at character {at}"
    return (
        f"the string at character {at} does not end: close it with {first}, and write \\\\ for a "
        f"backslash and \\{first} for a quote in it"
    )
