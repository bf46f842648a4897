"""Text of table rows, with the column's header before each cell. Pure."""

from collections.abc import Iterator, Sequence

Cell = str | None
"""The text of a cell; None for a column that the cell to the left spans, too."""
_PAIR = 2


def row_text(names: Sequence[str], cells: Sequence[Cell]) -> str:
    """Joins the cells that are not empty, each after the name of its column.

    If columns have no names, the first of two cells names the second.
    """
    if not names and len(cells) == _PAIR and cells[0] and cells[1]:
        return f"{cells[0].rstrip(':')}: {cells[1]}"
    parts: list[str] = []
    for column, cell in enumerate(cells):
        name = names[column].rstrip(":") if column < len(names) else ""
        if cell:
            parts.append(f"{name}: {cell}" if name else cell)
    return "; ".join(parts)


def column_names(rows: Sequence[Sequence[Cell]]) -> Sequence[str]:
    """Returns the names of columns by the header, which may have several rows."""
    names: list[list[str]] = [[] for _ in range(max(map(len, rows), default=0))]
    for row in rows:
        shown = ""
        for column, cell in enumerate(row):
            shown = shown if cell is None else cell
            if shown and shown not in names[column]:
                names[column].append(shown)
    return [" ".join(each) for each in names]


def row_texts(rows: Sequence[Sequence[Cell]], headers: int) -> Iterator[str]:
    """Yields the text of each row after the first `headers` rows, which name the columns."""
    names = column_names(rows[:headers])
    yield from (row_text(names, row) for row in rows[headers:])
