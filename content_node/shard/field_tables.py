"""Writes and reads the tables of a shard's database that index metadata fields for filters.

The tables map each value of each field to its rows. For a field with many values they also map
blocks of adjacent values to rows. A range query reads blocks, and single values only at its end.
`row_filter` evaluates filters.
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
from winnow.domain.shard import MAX_FIELDS
from winnow.errors import ArtefactError
from winnow.filtering import Value, ValueKind, fields_of, kind_of
from winnow.inference.stop_signal import StopSignal

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
_TABLE_NAMES = ("fields", "attributes", "blocks")
_METADATA = "SELECT row, metadata FROM passages WHERE metadata != '{}' ORDER BY row"
_BLOCK_VALUES = 256
"""Values per block. A range query reads one entry per block, and at most one block's values."""
_VALUES = "SELECT rows FROM attributes WHERE name = ? AND kind = ? AND value "
_BLOCKS = "SELECT rows FROM blocks WHERE name = ? AND kind = ? AND value "
_FIRST_BLOCK = "SELECT min(value) FROM blocks WHERE name = ? AND kind = ? AND value > ?"
_LAST_BLOCK = "SELECT max(value) FROM blocks WHERE name = ? AND kind = ? AND value <= ?"
_NEXT_VALUES = (
    "SELECT value, rows FROM attributes WHERE name = ? AND kind = ? AND value > ?"
    " ORDER BY value LIMIT ?"
)
RowMetadata = Iterable[tuple[int, str]]
"""Ascending rows with their metadata as JSON."""
Select = Callable[[str, Sequence[Value]], list[Any]]
"""Runs a query with these parameters; raises ArtefactError if the database cannot be read."""


class MemoryTables:
    """The tables in memory, for a database of an older format without them."""

    def __init__(self, passages: RowMetadata) -> None:
        """Fills the tables. Takes seconds for 100 000 passages: not on an event loop."""
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
        """`select` reads a database that has the tables; the shard has `rows` rows."""
        self._select, self._rows = select, rows
        names = select("SELECT DISTINCT name FROM fields ORDER BY name LIMIT ?", (MAX_FIELDS,))
        self.field_names = tuple(str(name) for (name,) in names)

    def values_by_kind(
        self, field: str, stop: StopSignal | None
    ) -> Mapping[ValueKind, "StoredValues"]:
        """Returns the values to look up. Reads nothing yet, so `stop` is ignored."""
        return {kind: StoredValues(self._select, self._rows, field, kind) for kind in ValueKind}


class StoredValues:
    """The values of one field and kind in the tables; implements `SortedValues`."""

    def __init__(self, select: Select, rows: int, field: str, kind: ValueKind) -> None:
        self._select, self._rows, self._key = select, rows, (field, kind)

    def all_rows(self) -> ValueRows:
        return self._read("SELECT rows FROM fields WHERE name = ? AND kind = ?")

    def rows_equal(self, values: Sequence[Value]) -> ValueRows:
        return self._read(f"{_VALUES}IN ({', '.join('?' * len(values))})", *values)

    def rows_below(self, value: Value, inclusive: bool) -> ValueRows:
        """Reads the blocks that end before `value`, and the values between them and `value`."""
        compared = _VALUES + ("<= ?" if inclusive else "< ?")
        ((edge,),) = self._select(_LAST_BLOCK, (*self._key, value))
        if edge is None:
            return self._read(compared, value)
        blocks = self._read(_BLOCKS + "< ?", edge)
        return np.concatenate([blocks, self._read(compared + " AND value >= ?", value, edge)])

    def rows_above(self, value: Value, inclusive: bool) -> ValueRows:
        """Reads the blocks that begin after `value`, and the values between `value` and them."""
        compared = _VALUES + (">= ?" if inclusive else "> ?")
        ((edge,),) = self._select(_FIRST_BLOCK, (*self._key, value))
        if edge is None:
            return self._read(compared, value)
        blocks = self._read(_BLOCKS + ">= ?", edge)
        return np.concatenate([blocks, self._read(compared + " AND value < ?", value, edge)])

    def values_above(self, value: Value, limit: int) -> list[tuple[Value, ValueRows]]:
        found = self._select(_NEXT_VALUES, (*self._key, value, limit))
        return [(each, self._checked_rows(blob)) for each, blob in found]

    def _read(self, query: str, *values: Value) -> ValueRows:
        blobs = self._select(query, (*self._key, *values))
        return self._checked_rows(b"".join(blob for (blob,) in blobs))

    def _checked_rows(self, blob: bytes) -> ValueRows:
        rows = np.frombuffer(blob, "<u4")
        if len(rows) and int(rows.max()) >= self._rows:
            raise ArtefactError(
                f"metadata field {self._key[0]!r} names row {rows.max()}, the shard has "
                f"{self._rows} rows: build the index again"
            )
        return rows


def write_tables(
    connection: sqlite3.Connection,
    passages: RowMetadata | None = None,
    block_values: int = _BLOCK_VALUES,
) -> None:
    """Creates the tables and fills them; commits nothing.

    Without `passages` the rows of the database's own table are indexed. A block has `block_values`
    values. All values are in memory at the same time, about 80 bytes for each distinct one.
    """
    for table in TABLES.split(";"):
        connection.execute(table)
    columns = _collect_columns(connection.execute(_METADATA) if passages is None else passages)
    for key, column in sorted(columns.items()):
        index = column.to_index(key[1])
        connection.execute(
            "INSERT INTO fields VALUES (?, ?, ?)", (*key, index.all_rows().tobytes())
        )
        _insert_steps(connection, "attributes", key, index, 1)
        if len(index.values) > block_values:
            _insert_steps(connection, "blocks", key, index, block_values)


def read_tables(select: Callable[[str], list[Any]]) -> list[list[Any]]:
    """Returns the sorted content of each table."""
    return [select(f"SELECT * FROM {name} ORDER BY 1, 2, 3") for name in _TABLE_NAMES]  # noqa: S608


def _collect_columns(passages: RowMetadata) -> dict[tuple[str, ValueKind], ValueColumn]:
    columns = defaultdict[tuple[str, ValueKind], ValueColumn](ValueColumn)
    for row, metadata in passages:
        for name, values in fields_of(json.loads(metadata)).items():
            for kind, value in {(kind_of(value), value) for value in values}:
                columns[name, kind].add(value, row)
    return columns


def _insert_steps(
    connection: sqlite3.Connection,
    table: str,
    key: tuple[str, ValueKind],
    index: ValueIndex,
    step: int,
) -> None:
    """Inserts every `step`th value, with the rows of all values up to the next inserted one."""
    begins = index.starts[:-1:step]
    parts = zip(index.values[::step], begins, [*begins[1:], len(index.rows)], strict=True)
    connection.executemany(
        f"INSERT INTO {table} VALUES (?, ?, ?, ?)",  # noqa: S608
        ((*key, value, index.rows[begin:end].tobytes()) for value, begin, end in parts),
    )
