"""Finds the words of a text, and ranges of a number of words. Pure."""

import re
import unicodedata
from collections.abc import Iterator

WORDS = 100
"""Wanted number of words of a passage."""
MAX_PASSAGE_CHARACTERS = 2_000
"""Limit of characters of a passage. 100 words of any language have fewer."""
_MAX_WORD_CHARACTERS = 500
"""Limit of characters of a word, and of the combining marks after it. Longer runs, such as text of
languages without spaces, are cut.
"""
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
"""Ranges of ideographs. Each ideograph is a word, as in BERT's tokenizer."""
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]{{1,{_MAX_WORD_CHARACTERS}}}")


def ranges_of_words(text: str, max_words: int = WORDS) -> Iterator[tuple[int, int]]:
    """Yields start and end (exclusive) of consecutive ranges of at most `max_words` words.

    A range has at most `MAX_PASSAGE_CHARACTERS`, unless it is a single word.
    """
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
