"""Cuts documents into passages of about 100 words, along their structure. Pure.

A passage is a range of the document's text. It never spans a heading. It consists of whole
paragraphs, list items and table rows; only a longer block is cut, between sentences. A line that
introduces a list stays with the list's first items.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from winnow.documents.document import Block, BlockKind, CutPassage, Document
from winnow.documents.word_ranges import (
    MAX_PASSAGE_CHARACTERS,
    WORDS,
    ranges_of_words,
    word_spans,
)
from winnow.text.sentences import sentence_spans

_FEW_WORDS = 40
"""A passage with fewer words takes the next part, even if both have more than `WORDS` words."""
_MAX_WORDS = 150
"""Maximum number of words of a passage."""
_MAX_HEADINGS = 20
"""Maximum number of headings of a passage. Of more, the outermost and the innermost are kept."""
_MAX_HEADING = 240
"""Limit of characters of a heading of a passage."""
_INTRODUCED = (BlockKind.LIST_ITEM, BlockKind.TABLE_ROW, BlockKind.CODE)
"""Kinds of blocks that a line such as "The options are:" introduces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A range of a block: the block, or one of its sentences."""

    start: int
    end: int
    words: int
    page: int | None
    continues: bool
    """Whether the part continues the list or table of the line before it."""


@dataclass(frozen=True, slots=True)
class _Section:
    """The blocks between two headings."""

    headings: tuple[Block, ...]
    """The headings above the blocks, the outermost first."""
    blocks: tuple[Block, ...]


def cut(document: Document) -> Iterator[CutPassage]:
    """Yields the passages of a document, in the order of its text.

    A heading with neither text nor subheadings is a passage, too, so that no text is lost. The time
    depends on the length of the document, not on its structure.
    """
    for section in _sections(document.blocks):
        headings, blocks = section.headings, section.blocks
        if not blocks:
            headings, blocks = headings[:-1], headings[-1:]
        names = tuple(_name(document.text, each) for each in headings)
        for group in _groups(_parts(document.text, blocks)):
            first, last = group[0], group[-1]
            yield CutPassage(start=first.start, end=last.end, headings=names, page=first.page)


def _sections(blocks: Sequence[Block]) -> Iterator[_Section]:
    """Yields sections with blocks, and headings with neither blocks nor subheadings."""
    headings: tuple[Block, ...] = ()
    own: list[Block] = []
    for block in blocks:
        if block.kind is not BlockKind.HEADING:
            own.append(block)
            continue
        above = tuple(each for each in headings if each.level < block.level)
        if own or len(above) < len(headings):
            yield _Section(headings, tuple(own))
        if len(above) >= _MAX_HEADINGS:
            above = (*above[:1], *above[2:])
        headings, own = (*above, block), []
    if own or headings:
        yield _Section(headings, tuple(own))


def _name(text: str, heading: Block) -> str:
    return text[heading.start : min(heading.end, heading.start + _MAX_HEADING)]


def _parts(text: str, blocks: Sequence[Block]) -> Iterator[_Part]:
    """Yields the parts of a section's blocks. Blocks that are too long are cut."""
    before: Block | None = None
    for block in blocks:
        continues = before is not None and _continues(text, before, block)
        for start, end in _block_ranges(text, block):
            words = sum(1 for _ in word_spans(text[start:end]))
            yield _Part(start=start, end=end, words=words, page=block.page, continues=continues)
        before = block


def _continues(text: str, before: Block, block: Block) -> bool:
    """Whether a block belongs to the list or table of the block before, or to its "such as:"."""
    if block.kind not in _INTRODUCED:
        return False
    return before.kind is block.kind or text[before.end - 1] == ":"


def _block_ranges(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yields the range of a block, or of its sentences if it is too long for a passage."""
    content = text[block.start : block.end]
    ranges: Iterable[tuple[int, int]] = [(0, len(content))]
    if len(list(ranges_of_words(content))) > 1:
        ranges = _lines(content) if block.kind is BlockKind.CODE else sentence_spans(content)
    for start, end in ranges:
        for range_start, range_end in ranges_of_words(content[start:end], _MAX_WORDS):
            yield block.start + start + range_start, block.start + start + range_end


def _lines(text: str) -> list[tuple[int, int]]:
    """Returns the ranges of all lines that are not blank, without the space around them."""
    ranges, offset = [], 0
    for line in text.splitlines(keepends=True):
        if content := line.strip():
            start = offset + line.index(content)
            ranges.append((start, start + len(content)))
        offset += len(line)
    return ranges


def _groups(parts: Iterable[_Part]) -> Iterator[list[_Part]]:
    """Groups consecutive parts into passages."""
    previous: list[_Part] = []
    group: list[_Part] = []
    words = 0
    for part in parts:
        while group and not _fit(group[0], part, words + part.words, _limit(words)):
            if previous:
                yield previous
            end = _break(group, part)
            previous, group = group[:end], group[end:]
            words = _words(group)
        group.append(part)
        words += part.words
    if previous and words < _FEW_WORDS:
        words += _words(previous)
        if _fit(previous[0], group[-1], words, _MAX_WORDS):
            previous, group = [], previous + group
    yield from filter(None, (previous, group))


def _break(group: Sequence[_Part], following: _Part) -> int:
    """Returns how many parts of a full passage end before `following`.

    If `following` continues a list, the list moves to the next passage as a whole, unless that
    leaves few words.
    """
    if following.continues:
        start = max(number for number, part in enumerate(group) if not part.continues or not number)
        if _has_many_words(group[:start]):
            return start
    return len(group)


def _words(group: Sequence[_Part]) -> int:
    return sum(part.words for part in group)


def _has_many_words(group: Sequence[_Part]) -> bool:
    return _words(group) >= _FEW_WORDS


def _limit(words: int) -> int:
    """Returns the maximum number of words of a passage that has `words` words and may get more."""
    return WORDS if words >= _FEW_WORDS else _MAX_WORDS


def _fit(first: _Part, last: _Part, words: int, max_words: int) -> bool:
    """Whether a passage may have the parts from `first` to `last`, which have `words` words."""
    return words <= max_words and last.end - first.start <= MAX_PASSAGE_CHARACTERS
