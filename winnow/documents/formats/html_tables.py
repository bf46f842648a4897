"""Rows of HTML tables, with the column's header before each cell."""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from winnow.documents.document import BlockKind
from winnow.documents.formats.tables import Cell, column_names, row_text

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_MAX_SPAN = 100
"""Maximum number of columns or rows of a cell. Greater values would cost memory."""


def is_data_table(table: "LexborNode") -> bool:
    """Returns whether a table holds data. Other tables only arrange the parts of a page."""
    if table.css_first("table table, pre, h1, h2, h3, ul, ol, dl") is not None:
        return False
    return any(len(row.css("td, th")) > 1 for row in table.css("tr"))


def table_rows(
    table: "LexborNode", text: "Callable[[LexborNode], str]"
) -> Iterator[tuple[BlockKind, str]]:
    """Yields the caption as a paragraph, then each row; `text` returns the text of a cell."""
    caption = table.css_first("caption")
    if caption is not None:
        yield BlockKind.PARAGRAPH, text(caption)
    header: list[list[Cell]] = []
    above: dict[int, tuple[int, Cell]] = {}  # by column: remaining rows of a cell, and its text
    for row in table.css("tr"):
        cells = _cells(row, above, text)
        in_head = row.parent is not None and row.parent.tag == "thead"
        if in_head or (not header and row.css_first("td") is None):
            header.append(cells)
        else:
            yield BlockKind.TABLE_ROW, row_text(column_names(header), cells)


def _cells(
    row: "LexborNode", above: dict[int, tuple[int, Cell]], text: "Callable[[LexborNode], str]"
) -> list[Cell]:
    """Returns the texts of a row, one for each column.

    A cell over several rows has its text in each of them. A cell over several columns has its text
    in the first one, and None in the others. `above` holds the cells of earlier rows that reach
    into this row, and is updated.
    """
    cells: list[Cell] = []
    for cell in row.css("td, th"):
        _fill_from_above(cells, above)
        contents = [text(cell), *[None] * (_span(cell, "colspan") - 1)]
        rows = _span(cell, "rowspan")
        for content in contents:
            if rows > 1:
                above[len(cells)] = (rows - 1, content)
            cells.append(content)
    _fill_from_above(cells, above)
    return cells


def _fill_from_above(cells: list[Cell], above: dict[int, tuple[int, Cell]]) -> None:
    while len(cells) in above:
        rows, content = above.pop(len(cells))
        if rows > 1:
            above[len(cells)] = (rows - 1, content)
        cells.append(content)


def _span(cell: "LexborNode", name: str) -> int:
    value = cell.attributes.get(name) or "1"
    return max(1, min(int(value), _MAX_SPAN)) if re.fullmatch(r"\d{1,4}", value) else 1
