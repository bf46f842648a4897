"""Groups the lines of a PDF file into paragraphs, tables and code, by place and type. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from winnow.documents.formats.pdf_lines import PdfLine

BULLET = re.compile(r"[•◦▪‣●○■□❑➢➤∙·\uf0b7\uf0a7\uf0d8\u2013\u2014*-]\s+(?=\S)|[•◦▪‣●\uf0b7](?=\S)")
"""Begin of a list item that says nothing."""
NUMBER = re.compile(r"\(?(?:\d{1,3}|[a-z])[.)]\s+(?=\S)")
"""Begin of an item of a numbered list."""
SENTENCE_END = re.compile(r"[.!?:;][\"')\]\u201d\u2019]*$")
_COUNTER = re.compile(r"[^\w\s]|\(?(?:[\dA-Z]{1,3}\.?)+\)?|\(?[a-z]\)?\.?")
"""The number or bullet before an item or a heading."""
_SAME_SIZE = 0.08
"""Difference of sizes of type within a paragraph, as a share."""
_GAP = 1.3
"""Distance of two lines from which a paragraph ends, as a multiple of the usual one."""
_ROW_GAP = 3.0
"""Distance of two rows from which a table ends; in em."""
_INDENT = 0.8
"""Difference of left edges from which a line is indented; in em."""
_SHORT = 0.25
"""Share of the width that is missing at the end of a paragraph's last line."""


@dataclass(slots=True, kw_only=True)
class LineGroup:
    """Consecutive lines that belong together."""

    lines: list[PdfLine]
    page: int
    rows: list[list[tuple[float, str]]] = field(default_factory=list)
    """Cells of a table's rows; empty for other groups."""

    @property
    def first(self) -> PdfLine:
        return self.lines[0]


def line_groups(pages: Sequence[Sequence[PdfLine]]) -> Iterator[LineGroup]:
    """Yields the groups of all pages; joins paragraphs that pages or columns interrupt."""
    previous: LineGroup | None = None
    for group in _groups(pages, _usual_distance(pages)):
        if previous is not None and _goes_on(previous, group):
            previous.lines += group.lines
            continue
        if previous is not None:
            yield previous
        previous = group
    if previous is not None:
        yield previous


def nearest(columns: Sequence[float], left: float) -> int:
    """Returns the index of the column whose left edge is nearest."""
    distances = [abs(column - left) for column in columns]
    return distances.index(min(distances))


def is_item(line: PdfLine) -> bool:
    """Returns whether a line begins a list item."""
    return bool(BULLET.match(line.text) or NUMBER.match(line.text))


def _usual_distance(pages: Sequence[Sequence[PdfLine]]) -> float:
    """Returns the distance of two lines of a paragraph, as a multiple of the size of type."""
    distances: Counter[float] = Counter()
    for page in pages:
        for line, following in pairwise(page):
            distance = line.last_baseline - following.baseline
            if line.size and 0.5 * line.size < distance < 3 * line.size:
                distances[round(distance / line.size, 1)] += 1
    return distances.most_common(1)[0][0] if distances else 1.2


def _goes_on(previous: LineGroup, group: LineGroup) -> bool:
    if previous.rows or group.rows or previous.first.fixed or previous.first.bold:
        return False
    last, first = previous.lines[-1], group.first
    moved = group.page != previous.page or first.baseline > last.last_baseline
    unfinished = not SENTENCE_END.search(last.text) and first.text[:1].islower()
    return moved and unfinished and not _differ(last, first) and not is_item(first)


def _groups(pages: Sequence[Sequence[PdfLine]], distance: float) -> Iterator[LineGroup]:
    for number, page in enumerate(pages, 1):
        group: LineGroup | None = None
        for index, line in enumerate(page):
            following = page[index + 1] if index + 1 < len(page) else None
            if group is not None and group.rows:
                if _add_to_table(group, line):
                    continue
            elif group is not None and not _begins(group.lines, line, distance):
                group.lines.append(line)
                continue
            if group is not None:
                yield group
            is_row = (
                following is not None
                and _is_row(line)
                and (_is_row(following) or _hangs(line, following))
            )
            rows = [list(line.cells)] if is_row else []
            group = LineGroup(lines=[line], page=number, rows=rows)
        if group is not None:
            yield group


def _begins(lines: Sequence[PdfLine], line: PdfLine, distance: float) -> bool:
    """Returns whether a line begins another paragraph than the lines before it."""
    first, previous = lines[0], lines[-1]
    em = line.size
    down = min(previous.baseline, previous.last_baseline) - line.baseline
    if _differ(previous, line) or not 0 < down < _GAP * distance * em:
        return True
    if line.fixed:
        return False
    if _hangs(first, line):
        # text beside a term, below its begin
        return False
    return _is_row(line) or _begins_by_form(lines, line)


def _begins_by_form(lines: Sequence[PdfLine], line: PdfLine) -> bool:
    """Returns whether a line begins a paragraph by its first characters and its left edge."""
    first, previous = lines[0], lines[-1]
    ended = bool(SENTENCE_END.search(previous.text))
    if BULLET.match(line.text) or (NUMBER.match(line.text) and (ended or is_item(first))):
        return True
    right = max(line.right, *(each.right for each in lines))
    short = previous.right < right - _SHORT * (right - first.left)
    ends = ended and short
    if line.bold:
        # further lines of a heading may be indented, or centred
        return ended
    if is_item(first):
        return ends and line.left < first.left + _INDENT * line.size / 2
    indent = (line.left - previous.left) / line.size if line.size else 0.0
    if indent > _INDENT:
        # all lines but the first may be indented, too
        return ended or short or len(lines) > 1
    # the first line of a paragraph may be indented
    return ends if indent >= -_INDENT else len(lines) > 1


def _hangs(first: PdfLine, line: PdfLine) -> bool:
    """Returns whether a line continues the text beside a term in the line `first`."""
    return len(first.cells) > 1 and abs(line.left - first.cells[1][0]) < line.size / 2


def _differ(previous: PdfLine, line: PdfLine) -> bool:
    """Returns whether two lines are of different type."""
    return (
        abs(line.size - previous.size) > _SAME_SIZE * previous.size
        or line.bold != previous.bold
        or line.fixed != previous.fixed
    )


def _is_row(line: PdfLine) -> bool:
    """Returns whether a line may be the row of a table: not a number or bullet with its text."""
    return len(line.cells) > 1 and not _COUNTER.fullmatch(line.cells[0][1])


def _add_to_table(group: LineGroup, line: PdfLine) -> bool:
    """Adds a line to a table as a row or to the last row; returns whether it belongs there."""
    last = group.lines[-1]
    em = line.size
    cells = line.cells or ((line.left, line.text),)
    if not 0 < last.last_baseline - line.baseline < _ROW_GAP * em:
        return False
    columns = [left for left, _ in group.rows[0]]
    if len(line.cells) > 1 and abs(cells[0][0] - columns[0]) < em:
        group.rows.append(list(cells))
    elif all(any(abs(left - column) < em for column in columns[1:]) for left, _ in cells):
        row = group.rows[-1]
        for left, text in cells:
            at = nearest([edge for edge, _ in row], left)
            row[at] = (row[at][0], f"{row[at][1]} {text}")
    else:
        return False
    group.lines.append(line)
    return True
