"""The tables that filters are looked up in: made from the metadata of passages.

For each value of each field there are the rows that have it, and where a field has many values, for
each block of them, too. Knows SQLite and metadata; what a filter means is `winnow.filtering`'s
business, and reading the tables that of `attributes`.
"""

import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.column import Column
from winnow.filtering import Value, ValueKind, fields_of, kind_of

TABLES = """
CREATE TABLE fields (
    name TEXT NOT NULL,           -- with dots for objects in objects
    kind INTEGER NOT NULL,        -- winnow.filtering.Kind
    rows BLOB NOT NULL,           -- that have a value of this kind: little-endian uint32, ascending
    PRIMARY KEY (name, kind)
) WITHOUT ROWID;
CREATE TABLE attributes (
    name TEXT NOT NULL,           -- of a field
    kind INTEGER NOT NULL,
    value NOT NULL,               -- text, real, or 0 and 1
    rows BLOB NOT NULL,           -- that have this value
    PRIMARY KEY (name, kind, value)
) WITHOUT ROWID;
CREATE TABLE blocks (
    name TEXT NOT NULL,           -- of a field with many values
    kind INTEGER NOT NULL,
    value NOT NULL,               -- the first of the block
    rows BLOB NOT NULL,           -- that have one of its values
    PRIMARY KEY (name, kind, value)
) WITHOUT ROWID
"""
_NAMES = ("fields", "attributes", "blocks")
METADATA = "SELECT row, metadata FROM passages WHERE metadata != '{}' ORDER BY row"
"""The rows that have any, and their JSON objects."""
BLOCK = 256
"""Values of a block: whatever a range is, few more entries are read than there are blocks."""
Passages = Iterable[tuple[int, str]]
"""Rows, ascending, with their metadata as JSON."""


class AttributesInMemory:
    """The tables in memory, for a database that was written before it had them."""

    def __init__(self, passages: Passages) -> None:
        """Takes seconds for 100 000 passages: not on an event loop."""
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._connection.close).atexit = False
        self._lock = threading.Lock()
        write_attributes(self._connection, passages)
        self._connection.commit()

    def select(self, query: str, values: Sequence[Value] = ()) -> list[Any]:
        """What a query with these parameters finds."""
        with self._lock:
            return self._connection.execute(query, values).fetchall()


def write_attributes(
    connection: sqlite3.Connection, passages: Passages | None = None, block: int = BLOCK
) -> None:
    """Makes the tables, and fills them; commits nothing.

    Without `passages` these are all rows of the database's own table; `block` is how many values a
    block has. All values are in memory at once, some 80 bytes for each that no other passage has.
    """
    for table in TABLES.split(";"):
        connection.execute(table)
    columns = _columns(connection.execute(METADATA) if passages is None else passages)
    for (name, kind), column in sorted(columns.items()):
        values, starts, rows = column.sorted(kind)
        of_field = np.unique(rows).tobytes()
        connection.execute("INSERT INTO fields VALUES (?, ?, ?)", (name, kind, of_field))
        of_values = _cut(values, starts, rows, 1)
        connection.executemany(
            "INSERT INTO attributes VALUES (?, ?, ?, ?)",
            ((name, kind, value, own) for value, own in of_values),
        )
        if len(values) > block:
            of_blocks = _cut(values, starts, rows, block)
            connection.executemany(
                "INSERT INTO blocks VALUES (?, ?, ?, ?)",
                ((name, kind, value, own) for value, own in of_blocks),
            )


def contents(select: Callable[[str], list[Any]]) -> list[list[Any]]:
    """All that the tables hold, in order."""
    return [select(f"SELECT * FROM {name} ORDER BY 1, 2, 3") for name in _NAMES]  # noqa: S608


def _columns(passages: Passages) -> dict[tuple[str, ValueKind], Column]:
    columns: dict[tuple[str, ValueKind], Column] = {}
    for row, metadata in passages:
        for name, values in fields_of(json.loads(metadata)).items():
            for kind, value in {(kind_of(value), value) for value in values}:
                if (name, kind) not in columns:
                    columns[name, kind] = Column()
                columns[name, kind].add(value, row)
    return columns


def _cut(
    values: Sequence[Value], starts: NDArray[np.int64], rows: NDArray[np.uint32], each: int
) -> Iterator[tuple[Value, bytes]]:
    """The first of `each` values, and the rows that have one of them."""
    begins = starts[::each].tolist()
    for value, begin, end in zip(values[::each], begins, [*begins[1:], len(rows)], strict=True):
        yield value, rows[begin:end].tobytes()
