"""Finds headers, footers and page numbers: lines at the edges of pages that repeat. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_EDGE = 3
"""Number of lines at the top and at the bottom of a page that may be headers and footers."""
_MIN_PAGES = 3
"""Number of pages on which a line must stand to be a header or footer."""
_MIN_SHARE = 0.1
"""Share of pages on which it must stand. Headers change by side and by chapter."""
_DIGITS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"\W*(?:page |seite |p\. ?)?(?:\d{1,4}|[ivxlc]{1,7})(?: ?(?:/|of|von) ?\d{1,4})?\W*"
    r"|.*\[page \d+\]",
    re.IGNORECASE,
)


def edge_lines(pages: Sequence[Sequence[str]]) -> list[set[int]]:
    """Returns for each page the indices of lines that are headers, footers or page numbers.

    Lines are equal if they differ only in numbers. Callers may mark lines, for example by their
    font size, so that only equally marked lines are equal. An edge line counts only if all lines
    between it and the edge count.
    """
    counts = Counter(key for page in pages for key in {*_keys(page)})
    least = max(_MIN_PAGES, _MIN_SHARE * len(pages))
    found: list[set[int]] = []
    for page in pages:
        indices: set[int] = set()
        for edge in _edges(page):
            for index in edge:
                key = _key(page[index])
                if page[index].strip() and counts[key] < least and not _is_number(page, index):
                    break
                indices.add(index)
        found.append(indices)
    return found


def _is_number(page: Sequence[str], index: int) -> bool:
    """Returns whether the outermost line of a page is a page number."""
    inner = range(index) if index < len(page) / 2 else range(index + 1, len(page))
    outermost = not any(page[each].strip() for each in inner)
    return outermost and bool(_PAGE_NUMBER.fullmatch(page[index].strip()))


def _keys(page: Sequence[str]) -> Iterator[str]:
    for edge in _edges(page):
        yield from (_key(page[index]) for index in edge)


def _key(line: str) -> str:
    return _DIGITS.sub("0", " ".join(line.split()))


def _edges(page: Sequence[str]) -> tuple[list[int], list[int]]:
    """Returns the indices of the lines at the top and bottom, from the edge inwards."""
    printed = [index for index, line in enumerate(page) if line.strip()]
    # the middle of a short page is no edge
    count = min(_EDGE, len(printed) // 2)
    return printed[:count], printed[::-1][:count]
