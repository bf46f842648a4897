"""Text of table rows, with the column's header before each cell. Pure."""

from collections.abc import Iterator, Sequence

_PAIR = 2


def row_text(header: Sequence[str], cells: Sequence[str]) -> str:
    """Joins cells, each after its column's header; leaves out empty and repeated ones.

    Without a header, the first of two cells names the second.
    """
    if not header and len(cells) == _PAIR and all(cells) and cells[0] != cells[1]:
        return f"{cells[0].rstrip(':')}: {cells[1]}"
    parts: list[str] = []
    for column, cell in enumerate(cells):
        name = header[column].rstrip(":") if column < len(header) else ""
        part = f"{name}: {cell}" if name else cell
        if cell and (not parts or parts[-1] != part):
            parts.append(part)
    return "; ".join(parts)


def row_texts(rows: Sequence[Sequence[str]], headers: int) -> Iterator[str]:
    """Yields the text of each row after the first `headers` rows, which name the columns."""
    columns = zip(*rows[:headers], strict=False)
    header = [" ".join(dict.fromkeys(filter(None, names))) for names in columns]
    yield from (row_text(header, row) for row in rows[headers:])
