"""Finds the words of a question in the text of a passage. Pure."""

import re
import unicodedata

_WORD = re.compile(r"\w[\w\u0300-\u036f]*")
"""Matches a word, with combining accents."""
_COMMON_WORDS = """
a an and are as at be been by can did do does for from had has have how in into is it its many much
of on or s that the their there these they this to was were what when where which who whom whose why
will with would
"""
_COMMON = frozenset(_COMMON_WORDS.split())
"""Words of English that say little about a passage."""


def highlights(question: str, text: str) -> tuple[tuple[int, int], ...]:
    """Returns the ranges of `text` with words of the question, in the order of the text.

    Case and accents do not matter. Common English words count only if the question has no other.
    Ranges are offsets of characters with an exclusive end. Adjacent words have separate ranges.
    """
    every = {_normal(word) for word in _WORD.findall(question)}
    wanted = every - _COMMON or every
    return tuple(match.span() for match in _WORD.finditer(text) if _normal(match.group()) in wanted)


def _normal(word: str) -> str:
    """Returns a word in lower case, without accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFD", word.casefold())
    return "".join(each for each in parts if not unicodedata.combining(each))
