"""The passages of the next generation: those of base and log that are left, in one new database.

Rows are copied from database to database as they are; nothing is encoded again.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from content_node.live.schema import State, get_state
from content_node.merging import queries
from content_node.shard.attribute_tables import write_attributes
from content_node.shard.schema import SCHEMA

Chunks = Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]
"""Rows, and their vectors: float32 [rows, dimension], a number of rows at a time."""

_CHUNK = 4_096
"""Rows of vectors in memory at a time: some megabytes."""


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a log that is merged."""

    after: int
    """The last write that the base holds."""
    upto: int
    """The last write that the next generation holds."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows the next generation has."""

    rows: int
    """Also those that hold nothing."""
    passages: int

    @property
    def holes(self) -> int:
        """Rows that hold nothing."""
        return self.rows - self.passages


class Passages:
    """The new database while it is filled: `count`, perhaps `number_anew`, `copy`, `close`."""

    def __init__(self, target: Path, base: Path, log: Path, rows: int, span: Span) -> None:
        """`rows` are those of the base, also those that hold nothing.

        Nobody writes to the base; the node writes to the log meanwhile, beyond the span.
        Raises sqlite3.Error, here and below, if one cannot be read or written.
        """
        self._rows, self._span = rows, {"after": span.after, "upto": span.upto}
        self._connection = connect = sqlite3.connect(_uri(target, "mode=rwc"), uri=True)
        # whoever is interrupted begins anew: durable is what is synced at the end
        connect.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        connect.execute("ATTACH ? AS base", (_uri(base, "mode=ro&immutable=1"),))
        connect.execute("ATTACH ? AS log", (_uri(log, "mode=ro"),))
        connect.executescript(SCHEMA)
        columns = {row[1] for row in connect.execute("PRAGMA base.table_info(passages)")}
        self._knows_writes = "sequence" in columns
        self._counts = Counts(rows, 0)

    def count(self) -> Counts:
        """Finds out which rows are left, in the numbers that the node gave them."""
        run = self._connection.execute
        run(queries.BASE if self._knows_writes else queries.BASE_AS_BUILT)
        run(queries.LATEST, self._span)
        run(queries.BY_ID)
        run(queries.BY_SEQUENCE)
        run(queries.DEAD)
        run(queries.KEPT)
        run(queries.ADDED, {**self._span, "rows": self._rows})
        ((puts,),) = run(queries.PUTS, self._span)
        self._counts = Counts(self._rows + puts, self._passages())
        return self._counts

    def dead(self) -> list[int]:
        """Rows that hold nothing any more, and did in the base, or were put since."""
        dead = [row for (row,) in self._connection.execute("SELECT row FROM dead")]
        added = {row for (row,) in self._connection.execute("SELECT row FROM added")}
        return dead + [row for row in range(self._rows, self._counts.rows) if row not in added]

    def number_anew(self) -> Counts:
        """Numbers the rows that are left from 0, in their order."""
        self._connection.execute(queries.NUMBER_KEPT)
        self._connection.execute(queries.NUMBER_ADDED)
        self._counts = Counts(self._passages(), self._passages())
        return self._counts

    def copy(self) -> None:
        """Fills the new database."""
        run = self._connection.execute
        run(queries.COPY_KEPT)
        run(queries.COPY_ADDED)
        if self._knows_writes:
            run(queries.KEEP_TOMBSTONES)
        run(queries.ADD_TOMBSTONES)
        write_attributes(self._connection)
        self._connection.commit()

    def vectors(self) -> Chunks:
        """All rows that hold a passage, and their vectors."""
        return self._chunks(queries.VECTORS)

    def put_vectors(self) -> Chunks:
        """The row of every put since the base, and its vector, also of those that are dead."""
        return self._chunks(queries.PUT_VECTORS, {**self._span, "rows": self._rows})

    def log_state(self) -> State:
        """Where the log stands."""
        return get_state(self._connection)

    def close(self) -> None:
        """Closes it; what was copied is in the file."""
        self._connection.close()

    def _chunks(self, query: str, values: dict[str, int] | None = None) -> Chunks:
        cursor = self._connection.execute(query, values or {})
        while found := cursor.fetchmany(_CHUNK):
            data = np.frombuffer(b"".join(vector for _, vector in found), "<f4")
            vectors = data.reshape(len(found), -1).astype(np.float32)
            yield np.array([row for row, _ in found], np.int64), vectors

    def _passages(self) -> int:
        query = "SELECT (SELECT count(*) FROM kept) + (SELECT count(*) FROM added)"
        ((count,),) = self._connection.execute(query)
        return int(count)


def _uri(path: Path, how: str) -> str:
    return f"{path.resolve().as_uri()}?{how}"
