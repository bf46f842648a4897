"""Splits the text of a filter into tokens. Pure."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from winnow.errors import InvalidRequestError, Violation
from winnow.filtering.writing import WORD
from winnow.quoting import quoted

FIELD = "filter"
"""Name of the request's field that holds filters, for violations."""
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\["'\\])*"|'(?:[^'\\]|\\["'\\])*')"""
    rf"|(?P<sign>[=<>!]+|[(),])|(?P<word>{WORD.pattern})|(?P<end>\Z))"
)
_ESCAPED = re.compile(r"""\\(["'\\])""")


class TokenKind(Enum):
    """Kinds of tokens."""

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
    """Its text; of a string without quotes and backslashes."""
    at: int
    """Position of its first character, counted from 1."""
    sign: str
    """The keyword or sign in lower case; empty for a string."""

    def __str__(self) -> str:
        return "the end" if self.shape is TokenKind.END else quoted(self.text)


def tokens(text: str) -> Iterator[Token]:
    """Yields the tokens of a filter; the last one is the end.

    Raises:
        InvalidRequestError: a part of the text is not a token, such as an unfinished string.

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
    """Returns the error for a filter that breaks a rule."""
    return InvalidRequestError(Violation(FIELD, description))


def _why(text: str, place: int) -> str:
    """Says why there is no token at a place, or after white space there."""
    rest = text[place:].lstrip()
    at, first = len(text) - len(rest) + 1, rest[0]
    if first == "\\":
        return f"a backslash stands outside of quotes at character {at}"
    return (
        f"the string at character {at} does not end: close it with {first}, and write \\\\ for a "
        f"backslash and \\{first} for a quote in it"
    )
