"""Splits the text of a filter into tokens. Pure."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from winnow.errors import InvalidRequestError, invalid_field
from winnow.filtering.writing import WORD
from winnow.quoting import quoted

FIELD = "filter"
"""Name of the request field of filters, for violations."""
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\["'\\])*"|'(?:[^'\\]|\\["'\\])*')"""
    rf"|(?P<sign>[=<>!]+|[(),])|(?P<word>{WORD.pattern})|(?P<end>\Z))"
)
_ESCAPED = re.compile(r"""\\(["'\\])""")


class TokenKind(Enum):
    """The kind of a token."""

    STRING = "string"
    """A string in quotes."""
    SIGN = "sign"
    """An operator, a parenthesis or a comma."""
    WORD = "word"
    """A keyword, a name or a number."""
    END = "end"
    """The end of the filter."""


class Token(NamedTuple):
    """A token of a filter."""

    kind: TokenKind
    text: str
    """Text of the token; for a string, without quotes and escapes."""
    position: int
    """Position of the first character, counted from 1."""
    keyword: str
    """The text in lower case; empty for a string."""

    def __str__(self) -> str:
        return "the end" if self.kind is TokenKind.END else quoted(self.text)


def tokens(text: str) -> Iterator[Token]:
    """Yields the tokens of a filter, with `TokenKind.END` as the last one.

    Raises InvalidRequestError for text that is no token, such as an unterminated string.
    """
    index, kind = 0, None
    while kind is not TokenKind.END:
        match = _TOKEN.match(text, index)
        if match is None or match.lastgroup is None:
            raise filter_error(_describe_error(text, index))
        kind, token_text, index = TokenKind(match.lastgroup), match[match.lastgroup], match.end()
        position = match.start(match.lastgroup) + 1
        if kind is TokenKind.STRING:
            yield Token(kind, _ESCAPED.sub(r"\1", token_text[1:-1]), position, "")
        else:
            yield Token(kind, token_text, position, token_text.lower())


def filter_error(description: str) -> InvalidRequestError:
    """Returns the error for an invalid filter."""
    return invalid_field(FIELD, description)


def _describe_error(text: str, index: int) -> str:
    """Describes why there is no token at an index of the text."""
    rest = text[index:].lstrip()
    position, first = len(text) - len(rest) + 1, rest[0]
    if first == "\\":
        return f"a backslash stands outside of quotes at character {position}"
    return (
        f"the string at character {position} does not end: close it with {first}; inside the "
        f"string, write \\\\ for a backslash and \\{first} for a quote"
    )
