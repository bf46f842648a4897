"""The passages of the next generation: those left of base and log, in one new database.

Rows are copied from database to database; nothing is encoded again.

The log is read some writes at a time, each time in its own transaction: SQLite cannot shorten its
write-ahead log while a transaction reads, and a merge takes minutes. The result is consistent all
the same. A write never changes once it was served, and a merge ends with such a write. The node
removes only writes that the served base holds, which come before the range, and it serves no other
base while it merges. So every transaction sees all writes of the range, unchanged.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.live.schema import State, get_state
from winnow.content_node.merging import queries
from winnow.content_node.shard.field_tables import write_tables
from winnow.content_node.shard.schema import SCHEMA
from winnow.errors import ArtefactError

Rows = NDArray[np.int64]
Vectors = NDArray[np.float32]
Chunks = Iterator[tuple[Rows, Vectors]]
"""Rows and their vectors, float32 [rows, dimension], some at a time."""

_CHUNK = 4_096
"""Rows of vectors in memory at a time: some megabytes."""
_WRITES = 1_024
"""Writes of the log that one transaction reads: some milliseconds."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """The range of a log that is merged."""

    after: int
    """The last write in the base."""
    upto: int
    """The last write in the next generation."""

    def parts(self, size: int) -> Iterator[dict[str, int]]:
        """The range in parts of up to `size` writes, as values of a query."""
        for after in range(self.after, self.upto, size):
            yield {"after": after, "upto": min(after + size, self.upto)}


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of rows and passages of the next generation."""

    rows: int
    """All rows, those without a passage included."""
    passages: int

    @property
    def holes(self) -> int:
        """Rows without a passage."""
        return self.rows - self.passages


class Passages:
    """The new database while it is filled: call `count`, perhaps `number_again`, `copy`,
    `close`.
    """

    def __init__(self, *, target: Path, base: Path, log: Path, rows: int, span: LogRange) -> None:
        """Opens the databases; `rows` are the rows of the base, those without a passage included.

        The base is not written meanwhile; the log is, beyond the range. This and the other methods
        raise sqlite3.Error if a database cannot be used.
        """
        self._rows, self._span = rows, span
        self._connection = connect = sqlite3.connect(_uri(target, "mode=rwc"), uri=True)
        # an interrupted merge is repeated from the start: the file is synced once, at the end
        connect.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        connect.execute("ATTACH ? AS base", (_uri(base, "mode=ro&immutable=1"),))
        connect.execute("ATTACH ? AS log", (_uri(log, "mode=ro"),))
        connect.executescript(SCHEMA)
        columns = {row[1] for row in connect.execute("PRAGMA base.table_info(passages)")}
        self._knows_writes = "sequence" in columns
        self._counts = Counts(rows, 0)

    def count(self) -> Counts:
        """Finds the rows that are left, in the numbers that the node gave them.

        Raises ArtefactError if a write of the range is missing.
        """
        run = self._connection.execute
        self._read_span()
        run(queries.BASE if self._knows_writes else queries.BASE_AS_BUILT)
        run(queries.LATEST)
        run(queries.BY_ID)
        run(queries.BY_SEQUENCE)
        run(queries.DEAD)
        run(queries.KEPT)
        run(queries.ADDED)
        run(queries.ADD, {"rows": self._rows})
        ((puts,),) = run(queries.PUTS)
        self._counts = Counts(self._rows + puts, self._passages())
        return self._counts

    def dead(self) -> list[int]:
        """Rows of the base, and of the puts since, that hold no passage any more."""
        dead = [row for (row,) in self._connection.execute("SELECT row FROM dead")]
        added = {row for (row,) in self._connection.execute("SELECT row FROM added")}
        return dead + [row for row in range(self._rows, self._counts.rows) if row not in added]

    def number_again(self) -> Counts:
        """Numbers the rows that are left from 0, in their order."""
        self._connection.execute(queries.NUMBER_KEPT)
        self._connection.execute(queries.NUMBER_ADDED)
        self._counts = Counts(self._passages(), self._passages())
        return self._counts

    def copy(self) -> None:
        """Fills the new database."""
        run = self._connection.execute
        run(queries.COPY_KEPT)
        for part in self._span.parts(_WRITES):
            self._connection.commit()
            run(queries.COPY_ADDED, part)
        self._connection.commit()
        if self._knows_writes:
            run(queries.KEEP_TOMBSTONES)
        run(queries.ADD_TOMBSTONES)
        write_tables(self._connection)
        self._connection.commit()

    def vectors(self) -> Chunks:
        """All rows that hold a passage, and their vectors."""
        cursor = self._connection.execute(queries.VECTORS)
        while found := cursor.fetchmany(_CHUNK):
            yield _chunk([row for row, _ in found], [vector for _, vector in found])

    def put_vectors(self) -> Chunks:
        """The row and the vector of every put since the base, deleted ones included."""
        first = self._rows
        for part in self._span.parts(_WRITES):
            found = self._connection.execute(queries.PUT_VECTORS, part).fetchall()
            if found:
                yield _chunk(range(first, first + len(found)), [vector for (vector,) in found])
            first += len(found)

    def log_state(self) -> State:
        """The state of the log."""
        return get_state(self._connection)

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()

    def _read_span(self) -> None:
        self._connection.execute(queries.SPAN)
        for part in self._span.parts(_WRITES):
            self._connection.execute(queries.READ_SPAN, part)
            self._connection.commit()
        ((found,),) = self._connection.execute(queries.SPAN_SIZE)
        if found != self._span.upto - self._span.after:
            raise ArtefactError(
                f"the log holds {found} of the writes {self._span.after + 1} to {self._span.upto}: "
                "some were forgotten while they were merged"
            )

    def _passages(self) -> int:
        query = "SELECT (SELECT count(*) FROM kept) + (SELECT count(*) FROM added)"
        ((count,),) = self._connection.execute(query)
        return int(count)


def _chunk(rows: Sequence[int], vectors: Sequence[bytes]) -> tuple[Rows, Vectors]:
    values = np.frombuffer(b"".join(vectors), "<f4").reshape(len(rows), -1)
    return np.array(rows, np.int64), values.astype(np.float32)


def _uri(path: Path, how: str) -> str:
    return f"{path.resolve().as_uri()}?{how}"
