"""Text of table rows, with the column's header before each cell. Pure."""

from collections.abc import Iterator, Sequence


def row_text(header: Sequence[str], cells: Sequence[str]) -> str:
    """Joins cells, each after its column's header; leaves out empty and repeated ones."""
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
