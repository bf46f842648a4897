"""Decides which blocks of a PDF file are headings: by its outline, type and numbers. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_LARGER = 1.12
"""Size of a heading's type from which it is a heading, as a multiple of that of the text."""
_NOT_SMALLER = 0.95
_MAX_HEADING = 200
"""Limit of characters of a heading."""
_MAX_LEVEL = 6
_NUMBER = re.compile(
    r"(?:chapter|appendix|part|section|kapitel)?\s*((?:\d{1,2}|[A-Z])(?:\.\d{1,3})*)\.?[\s:]+(?=\w)",
    re.I,
)
_TEXT_END = re.compile(r"[.,;:!?]$")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineEntry:
    """An entry of a file's outline (bookmarks)."""

    title: str
    level: int
    """Level from 1."""
    page: int
    """Number of the page, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadingCandidate:
    """A block that may be a heading."""

    text: str
    page: int
    size: float
    bold: bool
    lines: int


class HeadingLevels:
    """The levels of the headings of a file."""

    def __init__(
        self,
        candidates: Sequence[HeadingCandidate],
        outline: Iterable[OutlineEntry],
        body_size: float,
    ) -> None:
        self._body = body_size
        self._outline: dict[str, list[OutlineEntry]] = {}
        for entry in outline:
            self._outline.setdefault(_comparable(entry.title), []).append(entry)
        self._by_type = self._levels_by_type(candidates)

    def level(self, candidate: HeadingCandidate) -> int:
        """Returns the level of a heading, from 1; 0 if the block is no heading."""
        entry = self._entry(candidate)
        if entry is not None:
            return entry.level
        return self._by_type.get(_type(candidate), 0) if self._stands_out(candidate) else 0

    def is_doubtful(self, candidate: HeadingCandidate) -> bool:
        """Returns whether a heading is only bold, in a file whose outline lacks it."""
        larger = candidate.size > _LARGER * self._body
        return bool(self._outline) and not larger and self._entry(candidate) is None

    def _entry(self, candidate: HeadingCandidate) -> OutlineEntry | None:
        """Returns the entry of the outline for a heading."""
        if len(candidate.text) > _MAX_HEADING:
            return None
        number = _NUMBER.match(candidate.text)
        keys = [candidate.text, candidate.text[number.end() :]] if number else [candidate.text]
        for key in keys:
            for entry in self._outline.get(_comparable(key), ()):
                if entry.page == candidate.page:
                    return entry
        return None

    def _stands_out(self, candidate: HeadingCandidate) -> bool:
        """Returns whether the type and the form of a block are those of a heading."""
        text = candidate.text
        if len(text) > _MAX_HEADING or not _LETTER.search(text):
            return False
        if candidate.size > _LARGER * self._body:
            return True
        bold = candidate.bold and candidate.size > _NOT_SMALLER * self._body
        return bold and candidate.lines <= 2 and not _TEXT_END.search(text)  # noqa: PLR2004

    def _levels_by_type(
        self, candidates: Sequence[HeadingCandidate]
    ) -> Mapping[tuple[float, bool], int]:
        """Returns the level of each type: that of the outline's entries, else by size."""
        known: dict[tuple[float, bool], Counter[int]] = {}
        types: set[tuple[float, bool]] = set()
        for each in candidates:
            entry = self._entry(each)
            if entry is not None:
                known.setdefault(_type(each), Counter())[entry.level] += 1
            if entry is not None or self._stands_out(each):
                types.add(_type(each))
        levels: dict[tuple[float, bool], int] = {}
        level = 0
        for kind in sorted(types, reverse=True):
            level = known[kind].most_common(1)[0][0] if kind in known else level + 1
            levels[kind] = level = min(level, _MAX_LEVEL)
        return levels


def _type(candidate: HeadingCandidate) -> tuple[float, bool]:
    return round(candidate.size * 2) / 2, candidate.bold


def _comparable(text: str) -> str:
    """Returns the letters and digits of a heading without its number, to compare headings."""
    number = _NUMBER.match(text)
    title = text[number.end() :] if number else text
    return "".join(filter(str.isalnum, title.casefold()))
