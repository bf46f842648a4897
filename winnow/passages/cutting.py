"""Cuts raw documents into passages of 100 words, as DPR does. Pure.

Passages are consecutive parts of the text, without the space between them. The passages of the
document `doc` have the ids `doc#0`, `doc#1` and so on.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace

from winnow.domain.write import FedPassage

WORDS = 100
"""Number of words of a passage; the last passage of a document may have fewer."""
MAX_PASSAGE_CHARACTERS = 2_000
"""Limit of characters of a passage. 100 words of any language have fewer."""
ID_SEPARATOR = "#"
"""Separates the id of a document from the number of a passage."""
_MAX_WORD_CHARACTERS = 500
"""Limit of characters of a word, and of the combining marks after it. Longer runs, such as text of
languages without spaces, are cut.
"""
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
"""Ranges of ideographs. Each ideograph is a word, as in BERT's tokenizer."""
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]{{1,{_MAX_WORD_CHARACTERS}}}")


def cut_document(document: FedPassage) -> Iterator[FedPassage]:
    """Yields the passages of a document, each with its title and metadata; none without words."""
    for number, (start, end) in enumerate(passage_spans(document.text)):
        passage_id = f"{document.id}{ID_SEPARATOR}{number}"
        yield replace(document, id=passage_id, text=document.text[start:end])


def passage_spans(text: str, max_words: int = WORDS) -> Iterator[tuple[int, int]]:
    """Yields start and end (exclusive) of consecutive passages of at most `max_words` words."""
    start = end = words = 0
    for word_start, word_end in word_spans(text):
        if words and (words == max_words or word_end - start > MAX_PASSAGE_CHARACTERS):
            yield start, end
            words = 0
        if not words:
            start = word_start
        end, words = word_end, words + 1
    if words:
        yield start, end


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yields start and end (exclusive) of each word, with its combining marks.

    More than `_MAX_WORD_CHARACTERS` marks are words of their own.
    """
    previous_end = 0
    for match in _WORD.finditer(text):
        start, end = max(match.start(), previous_end), match.end()
        last = min(len(text), end + _MAX_WORD_CHARACTERS)
        while end < last and unicodedata.category(text[end]).startswith("M"):
            end += 1
        if start < end:
            yield start, end
        previous_end = end
