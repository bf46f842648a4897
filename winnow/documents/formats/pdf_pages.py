"""The lines of a PDF file that are text: without headers, footers and contents. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from winnow.documents.formats.page_edges import edge_lines
from winnow.documents.formats.pdf_lines import PdfLine

_CONTENTS = re.compile(r".*(?:\. ?){4,}\s*\w{1,6}\s*|.*(?:\s\.){3,}\s*\w{1,6}\s*")
"""An entry of a table of contents, with dots before the page number."""
_ENTRY = re.compile(r".*\s(?:\d{1,4}|[ivxl]{1,6})\s*")
"""A line that may be such an entry, with or without dots."""
_MIN_DOTTED = 4
_CONTENTS_SHARE = 0.6
"""Number of lines with dots, and share of lines with numbers, of a page of contents."""
_MARK_SIZE = 0.8
"""Size of the marks of footnotes, as a multiple of that of the text."""
_HEADER_GAP = 2.0
"""Distance of a header from the text; in em."""
_NO_TITLE = 1.05
"""Largest size of the type of a header, as a multiple of that of the text."""
_MIN_HEADERS = 4
"""Number of pages that must have a header at the same place."""
_FIRST_SIGN, _SIGNS = 0xE000, 0x1000
"""Range of characters that are no words, for private use."""
_SAME_BASELINE = 0.4
"""Difference of baselines within a line; in em."""
_CLOSING = frozenset(".,;:)]!?")
"""Characters before which there is no space."""
_TITLE_SIZE = 1.3
"""Size of the type of a title, as a multiple of that of the text."""


def text_pages(pages: Sequence[Sequence[PdfLine]]) -> Sequence[Sequence[PdfLine]]:
    """Returns the text lines of each page: no headers, footers, contents or marks of footnotes."""
    body = usual_size(pages)
    pages = [list(_whole_lines(page)) for page in pages]
    return [
        _text_lines(page, edges, body)
        for page, edges in zip(pages, _edges(pages, body), strict=True)
    ]


def usual_size(pages: Sequence[Sequence[PdfLine]]) -> float:
    """Returns the size of type that most characters have."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size, 1)] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def largest_text(pages: Sequence[Sequence[PdfLine]]) -> str:
    """Returns the text of the first page in its largest type; empty if none stands out."""
    first = next((page for page in pages if page), ())
    largest = max((line.size for line in first), default=0.0)
    if largest < _TITLE_SIZE * usual_size(pages):
        return ""
    return " ".join(line.text for line in first if line.size > 0.97 * largest)


def _whole_lines(page: Sequence[PdfLine]) -> Iterator[PdfLine]:
    """Joins the parts of lines, which PDFium divides at raised characters."""
    previous: PdfLine | None = None
    for line in page:
        if previous is not None and _is_same_line(previous, line):
            space = "" if line.text[0] in _CLOSING else " "
            text = f"{previous.text}{space}{line.text}"
            previous = replace(
                previous, text=text, right=line.right, last_baseline=line.last_baseline, cells=()
            )
            continue
        if previous is not None:
            yield previous
        previous = line
    if previous is not None:
        yield previous


def _is_same_line(previous: PdfLine, line: PdfLine) -> bool:
    return abs(previous.baseline - line.baseline) < _SAME_BASELINE * line.size and (
        previous.right - line.size < line.left < previous.right + line.size
    )


def _edges(pages: Sequence[Sequence[PdfLine]], body_size: float) -> Iterator[set[int]]:
    """Yields the indices of the headers and footers of each page."""
    # PDFium's order may have headers last
    orders = [
        [i for _, i in sorted((-line.baseline, i) for i, line in enumerate(page))] for page in pages
    ]
    texts = [
        # a heading is no header, although both have the same words: a sign stands for the size
        [f"{page[i].text} {chr(_FIRST_SIGN + round(page[i].size * 2) % _SIGNS)}" for i in order]
        for page, order in zip(pages, orders, strict=True)
    ]
    apart = [
        _apart(
            [[page[i] for i in order[::step]] for page, order in zip(pages, orders, strict=True)],
            body_size,
        )
        for step in (1, -1)
    ]
    for number, (order, edges) in enumerate(zip(orders, edge_lines(texts), strict=True)):
        outermost = {
            order[end] for end, found in zip((0, -1), apart, strict=True) if number in found
        }
        yield {order[index] for index in edges} | outermost


def _apart(pages: Sequence[Sequence[PdfLine]], body_size: float) -> set[int]:
    """Returns the pages whose first line stands apart at a place where most pages have such a line.

    Titles of slides do so, too, but they are larger than the text.
    """
    places: dict[int, set[int]] = {}
    for number, page in enumerate(pages):
        if len(page) > 2 and page[0].size <= _NO_TITLE * body_size:  # noqa: PLR2004
            gap = abs(page[0].baseline - page[1].baseline)
            if gap > _HEADER_GAP * page[0].size:
                places.setdefault(round(page[0].baseline / 2), set()).add(number)
    most = max(places.values(), key=len, default=set())
    least = max(_MIN_HEADERS, len([page for page in pages if page]) // 2)
    return most if len(most) >= least else set()


def _text_lines(page: Sequence[PdfLine], edges: set[int], body_size: float) -> Sequence[PdfLine]:
    """Returns the lines of a page that are text: no headers, contents or marks of footnotes."""
    lines = [line for index, line in enumerate(page) if index not in edges]
    dotted = [line for line in lines if _CONTENTS.fullmatch(line.text)]
    entries = [line for line in lines if _ENTRY.fullmatch(line.text)]
    if len(dotted) >= _MIN_DOTTED and len(entries) > _CONTENTS_SHARE * len(lines):
        return ()
    return [
        line
        for line in lines
        if not _CONTENTS.fullmatch(line.text)
        and not (line.text.isdigit() and line.size < _MARK_SIZE * body_size)
    ]
