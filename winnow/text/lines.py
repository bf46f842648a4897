"""Divides a text into paragraphs, list items and table rows. Pure.

Blank lines separate blocks. In a block, a line is a list item, a table row or a short paragraph, as
in the text of converted documents (`winnow.documents.document`). Exceptions are hard-wrapped
paragraphs, and list items with a marker that go on in the next line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_LINE = re.compile(r"[^\n]+")
_MARKER = re.compile(r"\s*(?:[-*+•‣◦▪–]|\(?(?:\d{1,3}|[A-Za-z])[.)])\s+\S")  # noqa: RUF001
"""Beginning of a list item, such as `- ` or `2. `."""
_INNER = re.compile(
    "an?|and|are|as|at|be|been|but|by|can|for|from|has|have|if|in|into|is|its?|may|must|not|of|on|or"
    "|shall|should|than|that|the|their|these|they|this|to|was|were|when|which|will|with"
)
"""Words in small letters that neither end nor begin a list item."""
_MAX_BREAKS_PER_INNER = 4
"""Maximum number of line breaks of a paragraph for each break beside such a word."""
_MAX_BLOCK = 2_000
"""Maximum number of characters that are searched before and after a span."""
MAX_LINES = 60
"""Maximum number of lines that are searched before and after a span. A longer list is no answer."""
_MIN_WRAP_WIDTH = 40
"""Minimum width of hard-wrapped text, in characters. Shorter lines are list items."""


@dataclass(frozen=True, slots=True)
class TextRange:
    """The range [start, end) of a text, in code points."""

    start: int
    end: int


def block_around(text: str, start: int, end: int) -> TextRange:
    """Returns the range of the blocks that the span [start, end) overlaps.

    Searches at most `_MAX_BLOCK` characters and `MAX_LINES` lines before and after the span. A
    block that is longer has more than `MAX_LINES` line breaks.
    """
    first, last = max(0, start - _MAX_BLOCK), min(len(text), end + _MAX_BLOCK)
    first, last = _begin_of_lines(text, first, start), _end_of_lines(text, end, last)
    for blank in _BLANK_LINES.finditer(text, first, last):
        if blank.end() <= start:
            first = blank.end()
        elif blank.start() >= end:
            last = blank.start()
            break
    return _stripped(text, first, last)


def blocks_of(text: str) -> Iterator[TextRange]:
    """Yields the ranges of all blocks of a text."""
    start = 0
    for blank in _BLANK_LINES.finditer(text):
        yield _stripped(text, start, blank.start())
        start = blank.end()
    yield _stripped(text, start, len(text))


def units_of(text: str, block: TextRange) -> list[TextRange]:
    """Returns the paragraphs, list items or table rows of a block, in order."""
    ranges = (
        _stripped(text, *line.span()) for line in _LINE.finditer(text, block.start, block.end)
    )
    lines = [line for line in ranges if line.start < line.end]
    items = [index for index, line in enumerate(lines) if _MARKER.match(text, line.start, line.end)]
    if items:
        firsts = sorted({0, *items})
    elif _is_wrapped([text[line.start : line.end] for line in lines]):
        firsts = [0]
    else:
        firsts = list(range(len(lines)))
    ends = [*firsts[1:], len(lines)]
    return [
        TextRange(lines[first].start, lines[end - 1].end)
        for first, end in zip(firsts, ends, strict=False)
    ]


def _begin_of_lines(text: str, first: int, start: int) -> int:
    """Returns the begin of the lines before `start` that are searched, but at least `first`."""
    position = start
    for _ in range(MAX_LINES + 2):
        position = text.rfind("\n", first, position)
        if position < 0:
            return first
    return position + 1


def _end_of_lines(text: str, end: int, last: int) -> int:
    """Returns the end of the lines after `end` that are searched, but at most `last`."""
    position = end - 1
    for _ in range(MAX_LINES + 2):
        position = text.find("\n", position + 1, last)
        if position < 0:
            return last
    return position


def _stripped(text: str, start: int, end: int) -> TextRange:
    """Returns the range without white space at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return TextRange(start, end)


def _is_wrapped(lines: list[str]) -> bool:
    """Whether the lines are one wrapped paragraph.

    The first word of each line of a wrapped paragraph did not fit into the line before it. A list
    may have such lines by chance. So the text must also continue across some of the line breaks: a
    comma is before the break, or a word beside it can neither begin nor end an item.
    """
    width, pairs = max(map(len, lines), default=0), list(pairwise(lines))
    if not pairs or width < _MIN_WRAP_WIDTH:
        return False
    if any(len(line) + 1 + len(following.split()[0]) <= width for line, following in pairs):
        return False
    continued = sum(
        line[-1] == "," or any(map(_INNER.fullmatch, (line.split()[-1], following.split()[0])))
        for line, following in pairs
    )
    return _MAX_BREAKS_PER_INNER * continued >= len(pairs)
