"""Cuts raw documents into passages of 100 words, as DPR's are. Pure.

Passages are consecutive pieces of the source text. Only the space between them is lost. The
passages of the document `doc` are called `doc#0`, `doc#1` and so on.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace

from winnow.domain.write import FedPassage

WORDS = 100
"""Words of a passage; the last passage of a document may have fewer."""
MOST_CHARACTERS = 2_000
"""Characters of a passage: 100 words of any language have fewer."""
MARK = "#"
"""Between the id of a document and the number of a passage."""
_LONGEST = 500
"""Characters of a word. A longer run is no word, or belongs to a language that is written without
spaces, and is cut."""
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
"""Characters that are written without spaces: each is a word, as for the tokenizer."""
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]{{1,{_LONGEST}}}")


def cut(document: FedPassage) -> Iterator[FedPassage]:
    """The passages of a document, each with its title and metadata; none if it has no word."""
    for number, (start, end) in enumerate(_pieces(document.text)):
        name = f"{document.id}{MARK}{number}"
        yield replace(document, id=name, text=document.text[start:end])


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """First character and one past the last of each piece."""
    start = end = words = 0
    for first, last in _words(text):
        if words and (words == WORDS or last - start > MOST_CHARACTERS):
            yield start, end
            words = 0
        if not words:
            start = first
        end, words = last, words + 1
    if words:
        yield start, end


def _words(text: str) -> Iterator[tuple[int, int]]:
    """First character and one past the last of each word, with its combining marks."""
    past = 0
    for found in _WORD.finditer(text):
        first, last = max(found.start(), past), found.end()
        while last < len(text) and unicodedata.category(text[last]).startswith("M"):
            last += 1
        if first < last:
            yield first, last
        past = last
