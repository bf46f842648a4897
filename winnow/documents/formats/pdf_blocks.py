"""Turns groups of lines of a PDF file into blocks of a document. Pure."""

from collections.abc import Iterator, Sequence

from winnow.documents.document import BlockKind, DocumentBuilder
from winnow.documents.formats.line_joining import HYPHEN, LineJoiner
from winnow.documents.formats.pdf_groups import (
    BULLET,
    NUMBER,
    SENTENCE_END,
    LineGroup,
    is_item,
    line_groups,
    nearest,
)
from winnow.documents.formats.pdf_headings import HeadingCandidate, HeadingLevels, OutlineEntry
from winnow.documents.formats.pdf_lines import PdfLine
from winnow.documents.formats.pdf_pages import text_pages, usual_size
from winnow.documents.formats.tables import Cell, row_texts

_MAX_TERM = 80
"""Limit of characters of a term that is explained in the indented text below it."""
_SHORT_TERM = 0.1
"""Share of the width of this text that a term must leave free."""


def add_blocks(
    builder: DocumentBuilder, pages: Sequence[Sequence[PdfLine]], outline: Sequence[OutlineEntry]
) -> None:
    """Adds the blocks of a file, without headers, footers and tables of contents."""
    pages = text_pages(pages)
    joiner = LineJoiner(line.text for page in pages for line in page)
    groups = list(line_groups(pages))
    candidates = [_candidate(group, joiner) for group in groups]
    levels = HeadingLevels(
        [each for each, group in zip(candidates, groups, strict=True) if _is_prose(group)],
        outline,
        usual_size(pages),
    )
    term = ""
    for index, (group, candidate) in enumerate(zip(groups, candidates, strict=True)):
        level = levels.level(candidate) if _is_prose(group) and not term else 0
        explained = index + 1 < len(groups) and _is_term(group, groups[index + 1])
        if level and not (explained and levels.is_doubtful(candidate)):
            builder.add(BlockKind.HEADING, candidate.text, level=level, page=group.page)
        elif explained and not term:
            term = f"{candidate.text.rstrip(':')}: "
            continue
        else:
            _add(builder, group, joiner, term)
        term = ""


def _add(builder: DocumentBuilder, group: LineGroup, joiner: LineJoiner, term: str) -> None:
    """Adds a group that is no heading."""
    text = joiner.joined([line.text for line in group.lines])
    bullet = BULLET.match(text)
    if group.rows:
        for row in _row_texts(group, joiner):
            builder.add(BlockKind.TABLE_ROW, row, page=group.page)
    elif group.first.fixed:
        builder.add(BlockKind.CODE, _code(group.lines), page=group.page)
    elif term or bullet or NUMBER.match(text):
        item = text[bullet.end() :] if bullet else text
        builder.add(BlockKind.LIST_ITEM, f"{term}{item}", level=1, page=group.page)
    else:
        builder.add(BlockKind.PARAGRAPH, text, page=group.page)


def _is_prose(group: LineGroup) -> bool:
    return not group.rows and not group.first.fixed


def _row_texts(group: LineGroup, joiner: LineJoiner) -> Iterator[str]:
    """Yields the text of each row; a bold first row names the columns."""
    bold = group.first.bold and len(group.rows) > 1 and not group.lines[-1].bold
    columns = [left for left, _ in group.rows[0]]
    rows = []
    for row in group.rows:
        cells: list[Cell] = [""] * len(columns)
        for left, text in row:
            at = nearest(columns, left)
            cells[at] = f"{cells[at] or ''} {joiner.joined([text])}".strip()
        rows.append(cells)
    return row_texts(rows, int(bold))


def _candidate(group: LineGroup, joiner: LineJoiner) -> HeadingCandidate:
    first = group.first
    return HeadingCandidate(
        text=joiner.joined([line.text for line in group.lines]),
        page=group.page,
        size=first.size,
        bold=first.bold,
        lines=len(group.lines),
    )


def _is_term(group: LineGroup, following: LineGroup) -> bool:
    """Returns whether a group is one short line that the indented group below it explains."""
    first, below = group.first, following.first
    if len(group.lines) > 1 or group.rows or not _is_prose(following) or is_item(below):
        return False
    text = first.text
    right = max(line.right for line in following.lines)
    if len(text) > _MAX_TERM or SENTENCE_END.search(text.rstrip(":")) or is_item(first):
        return False
    return (
        group.page == following.page
        and 0 < first.last_baseline - below.baseline < 2 * first.size
        and below.left > first.left + first.size
        and first.right < right - _SHORT_TERM * (right - below.left)
    )


def _code(lines: Sequence[PdfLine]) -> str:
    """Returns lines of code with their indentation."""
    left = min(line.left for line in lines)
    shown = []
    for line in lines:
        width = (line.right - line.left) / max(1, len(line.text))
        shown.append(" " * round((line.left - left) / width if width > 0 else 0) + line.text)
    return "\n".join(shown).replace(HYPHEN, "-")
