"""Finds headers, footers and page numbers: lines at the edges of pages that repeat. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_EDGE = 3
"""Number of lines at the top and at the bottom of a page that may be headers and footers."""
_MIN_PAGES = 3
"""Number of pages on which a line must stand to be a header or footer."""
_NEAR = 2
"""Distance of these pages. Headers may stand on every other page, and differ by chapter."""
_NUMBERED_SHARE = 0.5
"""Share of pages whose outermost lines must have the page's number."""
_DIGITS = re.compile(r"\d+")
_FIRST_NUMBER = re.compile(r"\W*(\d{1,4})\b")
_LAST_NUMBER = re.compile(r"(?<![\d.,])(\d{1,4})\W*$")
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
    repeated = _repeated(pages)
    numbered = _numbered(pages)
    found: list[set[int]] = []
    for number, page in enumerate(pages):
        indices = {
            index for index in _only_line(page) if _PAGE_NUMBER.fullmatch(page[index].strip())
        }
        for edge in _edges(page):
            for place, index in enumerate(edge):
                is_number = place == 0 and bool(_PAGE_NUMBER.fullmatch(page[index].strip()))
                if not (
                    is_number
                    or (number, index) in numbered
                    or _key(page[index]) in repeated[number]
                ):
                    break
                indices.add(index)
        found.append(indices)
    return found


def _repeated(pages: Sequence[Sequence[str]]) -> list[set[str]]:
    """Returns for each page the edge lines that stand on enough pages around it."""
    places: dict[str, list[int]] = {}
    for number, page in enumerate(pages):
        for key in {_key(page[index]) for edge in _edges(page) for index in edge}:
            places.setdefault(key, []).append(number)
    found: list[set[str]] = [set() for _ in pages]
    for key, numbers in places.items():
        for run in _runs(numbers):
            if len(run) >= _MIN_PAGES:
                for number in run:
                    found[number].add(key)
    return found


def _runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Yields sequences of numbers that are near each other."""
    run: list[int] = []
    for number in numbers:
        if run and number - run[-1] > _NEAR:
            yield run
            run = []
        run.append(number)
    yield run


def _numbered(pages: Sequence[Sequence[str]]) -> set[tuple[int, int]]:
    """Returns page and index of outermost lines that begin or end with the page's number."""
    offsets: dict[int, list[tuple[int, int]]] = {}
    for number, page in enumerate(pages):
        for edge in _edges(page):
            for index in edge[:1]:
                for found in {*_numbers(page[index])}:
                    offsets.setdefault(found - number, []).append((number, index))
    counts = Counter({offset: len({page for page, _ in at}) for offset, at in offsets.items()})
    printed = sum(any(line.strip() for line in page) for page in pages)
    least = max(_MIN_PAGES, _NUMBERED_SHARE * printed)
    return {place for offset in counts if counts[offset] >= least for place in offsets[offset]}


def _numbers(line: str) -> Iterator[int]:
    for pattern in (_FIRST_NUMBER.match, _LAST_NUMBER.search):
        if match := pattern(line):
            yield int(match[1])


def _key(line: str) -> str:
    return _DIGITS.sub("0", " ".join(line.split()))


def _only_line(page: Sequence[str]) -> Sequence[int]:
    """Returns the index of the line of a page that has no other; none for other pages."""
    printed = [index for index, line in enumerate(page) if line.strip()]
    return printed if len(printed) == 1 else ()


def _edges(page: Sequence[str]) -> tuple[list[int], list[int]]:
    """Returns the indices of the lines at the top and bottom, from the edge inwards."""
    printed = [index for index, line in enumerate(page) if line.strip()]
    # the middle of a short page is no edge
    count = min(_EDGE, len(printed) // 2)
    return printed[:count], printed[::-1][:count]
