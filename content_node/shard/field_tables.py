"""The tables in a shard's database that filters are looked up in: written here, and read.

For each value of each field there are the rows that have it, and for a field with many values also
the rows of each block of values. A range reads blocks, and single values only at its end. Knows
SQLite and metadata; `row_filter` knows what a filter means.
"""

import json
import sqlite3
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from winnow.content_node.shard.row_filter import ValueRows
from winnow.content_node.shard.value_index import ValueColumn, ValueIndex
from winnow.domain.shard import MOST_FIELDS
from winnow.errors import ArtefactError
from winnow.filtering import Value, ValueKind, fields_of, kind_of
from winnow.inference.stop import Stop

# a change of this text, comments included, changes the bytes of every shard that is built
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
"""Selects the rows that have metadata, and their JSON objects."""
BLOCK = 256
"""Values of a block. A range reads one entry for each block, and at most this many at its end."""
_VALUES = "SELECT rows FROM attributes WHERE name = ? AND kind = ? AND value "
_BLOCKS = "SELECT rows FROM blocks WHERE name = ? AND kind = ? AND value "
_FIRST_BLOCK = "SELECT min(value) FROM blocks WHERE name = ? AND kind = ? AND value > ?"
_LAST_BLOCK = "SELECT max(value) FROM blocks WHERE name = ? AND kind = ? AND value <= ?"
Passages = Iterable[tuple[int, str]]
"""Rows, ascending, with their metadata as JSON."""
Select = Callable[[str, Sequence[Value]], list[Any]]
"""Runs a query with these parameters; raises ArtefactError if the database cannot be read."""


class TablesInMemory:
    """The tables in memory, for a database of a format that has none."""

    def __init__(self, passages: Passages) -> None:
        """Takes seconds for 100 000 passages: not on an event loop."""
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._connection.close).atexit = False
        self._lock = threading.Lock()
        write_tables(self._connection, passages)
        self._connection.commit()

    def select(self, query: str, values: Sequence[Value] = ()) -> list[Any]:
        """Runs a query with these parameters."""
        with self._lock:
            return self._connection.execute(query, values).fetchall()


class StoredFields:
    """The tables of a shard as a `FieldIndex`."""

    def __init__(self, select: Select, rows: int) -> None:
        """`select` reads a database that has the tables, of `rows` rows."""
        self._select, self._rows = select, rows
        found = select("SELECT DISTINCT name FROM fields ORDER BY name LIMIT ?", (MOST_FIELDS,))
        self.names = tuple(str(name) for (name,) in found)

    def values(self, field: str, stop: Stop | None) -> Mapping[ValueKind, "StoredValues"]:
        """Returns values to look up; nothing is read yet, so `stop` ends nothing here."""
        return {kind: StoredValues(self._select, self._rows, field, kind) for kind in ValueKind}


class StoredValues:
    """The values of one kind that a field has, in the tables; implements `SortedValues`."""

    def __init__(self, select: Select, rows: int, field: str, kind: ValueKind) -> None:
        self._select, self._rows, self._of = select, rows, (field, kind)

    def having(self) -> ValueRows:
        return self._read("SELECT rows FROM fields WHERE name = ? AND kind = ?")

    def equal(self, values: Sequence[Value]) -> ValueRows:
        return self._read(f"{_VALUES}IN ({', '.join('?' * len(values))})", *values)

    def below(self, value: Value, inclusive: bool) -> ValueRows:
        """Reads the blocks that end before the value, and what lies between them and it."""
        compared = _VALUES + ("<= ?" if inclusive else "< ?")
        ((edge,),) = self._select(_LAST_BLOCK, (*self._of, value))
        if edge is None:
            return self._read(compared, value)
        blocks = self._read(_BLOCKS + "< ?", edge)
        return np.concatenate([blocks, self._read(compared + " AND value >= ?", value, edge)])

    def above(self, value: Value, inclusive: bool) -> ValueRows:
        """Reads the blocks that begin behind the value, and what lies between it and them."""
        compared = _VALUES + (">= ?" if inclusive else "> ?")
        ((edge,),) = self._select(_FIRST_BLOCK, (*self._of, value))
        if edge is None:
            return self._read(compared, value)
        blocks = self._read(_BLOCKS + ">= ?", edge)
        return np.concatenate([blocks, self._read(compared + " AND value < ?", value, edge)])

    def _read(self, query: str, *values: Value) -> ValueRows:
        found = self._select(query, (*self._of, *values))
        rows = np.frombuffer(b"".join(rows for (rows,) in found), "<u4")
        if len(rows) and int(rows.max()) >= self._rows:
            raise ArtefactError(
                f"a field is of row {rows.max()}, and there are {self._rows}: build the index again"
            )
        return rows


def write_tables(
    connection: sqlite3.Connection, passages: Passages | None = None, block: int = BLOCK
) -> None:
    """Creates the tables and fills them; commits nothing.

    Without `passages` the rows of the database's own table are taken. A block has `block` values.
    All values are in memory at once, some 80 bytes for each that no other passage has.
    """
    for table in TABLES.split(";"):
        connection.execute(table)
    columns = _columns(connection.execute(METADATA) if passages is None else passages)
    for (name, kind), column in sorted(columns.items()):
        index = column.sorted(kind)
        having = name, kind, index.having().tobytes()
        connection.execute("INSERT INTO fields VALUES (?, ?, ?)", having)
        _insert(connection, "attributes", (name, kind), index, 1)
        if len(index.values) > block:
            _insert(connection, "blocks", (name, kind), index, block)


def contents(select: Callable[[str], list[Any]]) -> list[list[Any]]:
    """Returns all that the tables hold, in order."""
    return [select(f"SELECT * FROM {name} ORDER BY 1, 2, 3") for name in _NAMES]  # noqa: S608


def _columns(passages: Passages) -> dict[tuple[str, ValueKind], ValueColumn]:
    columns = defaultdict[tuple[str, ValueKind], ValueColumn](ValueColumn)
    for row, metadata in passages:
        for name, values in fields_of(json.loads(metadata)).items():
            for kind, value in {(kind_of(value), value) for value in values}:
                columns[name, kind].add(value, row)
    return columns


def _insert(
    connection: sqlite3.Connection,
    table: str,
    of: tuple[str, ValueKind],
    index: ValueIndex,
    each: int,
) -> None:
    """Inserts the first of `each` values, and the rows that have one of them."""
    begins = index.starts[:-1:each]
    parts = zip(index.values[::each], begins, [*begins[1:], len(index.rows)], strict=True)
    connection.executemany(
        f"INSERT INTO {table} VALUES (?, ?, ?, ?)",  # noqa: S608
        ((*of, value, index.rows[begin:end].tobytes()) for value, begin, end in parts),
    )
