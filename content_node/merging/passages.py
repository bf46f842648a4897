"""Writes the passages of the next generation: those of base and log, in a new database.

Rows are copied between databases; nothing is encoded again.

The log is read in chunks of writes, each in its own transaction: SQLite cannot shorten its
write-ahead log while a transaction reads, and a merge takes minutes. The result is consistent
nevertheless. All writes of the range were served before the merge, and a served write never
changes. The node removes only writes that the served base holds, which come before the range, and
it serves no other base while it merges. So every transaction sees all writes of the range,
unchanged.
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
"""Chunks of row numbers, [rows], and their vectors, float32 [rows, dimension]."""

_CHUNK_ROWS = 4_096
"""Rows whose vectors are in memory at a time: some megabytes."""
_CHUNK_WRITES = 1_024
"""Writes of the log that one transaction reads: some milliseconds."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """The range of the log that is merged."""

    after: int
    """The last write in the base."""
    upto: int
    """The last write in the next generation."""

    def chunks(self) -> Iterator[dict[str, int]]:
        """Yields the range in chunks, each as the parameters of a query."""
        for after in range(self.after, self.upto, _CHUNK_WRITES):
            yield {"after": after, "upto": min(after + _CHUNK_WRITES, self.upto)}


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The numbers of rows and passages of the next generation."""

    rows: int
    """Number of all rows, including those without a passage."""
    passages: int

    @property
    def holes(self) -> int:
        """Number of rows without a passage."""
        return self.rows - self.passages


class MergedPassages:
    """Fills the new database: call `count_rows`, `renumber_rows` if needed, `copy` and `close`."""

    def __init__(
        self, *, target: Path, base: Path, log: Path, rows: int, log_range: LogRange
    ) -> None:
        """Opens the databases; `rows` is the number of rows of the base, including holes.

        No process may write to the base meanwhile; the log may get later writes. All methods raise
        sqlite3.Error if a database cannot be used.
        """
        self._rows, self._range = rows, log_range
        self._connection = connect = sqlite3.connect(_database_uri(target, "mode=rwc"), uri=True)
        # an interrupted merge starts over, so the file is synced once, at the end
        connect.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        connect.execute("ATTACH ? AS base", (_database_uri(base, "mode=ro&immutable=1"),))
        connect.execute("ATTACH ? AS log", (_database_uri(log, "mode=ro"),))
        connect.executescript(SCHEMA)
        columns = {row[1] for row in connect.execute("PRAGMA base.table_info(passages)")}
        self._has_versions = "sequence" in columns
        self._counts = RowCounts(rows, 0)

    def count_rows(self) -> RowCounts:
        """Finds and counts the rows of the next generation. They keep their numbers in the node.

        Raises ArtefactError if a write of the range is missing.
        """
        execute = self._connection.execute
        self._read_range()
        execute(queries.BASE if self._has_versions else queries.BASE_AS_BUILT)
        execute(queries.LATEST)
        execute(queries.BY_ID)
        execute(queries.BY_SEQUENCE)
        execute(queries.DEAD)
        execute(queries.KEPT)
        execute(queries.ADDED)
        execute(queries.ADD, {"rows": self._rows})
        ((puts,),) = execute(queries.PUTS)
        self._counts = RowCounts(self._rows + puts, self._count_passages())
        return self._counts

    def deletes_tenant(self) -> bool:
        """Whether the range has the deletion of a whole tenant. Call `count_rows` before."""
        ((count,),) = self._connection.execute(queries.DELETED_TENANTS)
        return bool(count)

    def dead_rows(self) -> list[int]:
        """Lists the rows of the base and of later puts whose passages were replaced or deleted."""
        dead = [row for (row,) in self._connection.execute("SELECT row FROM dead")]
        added = {row for (row,) in self._connection.execute("SELECT row FROM added")}
        return dead + [row for row in range(self._rows, self._counts.rows) if row not in added]

    def renumber_rows(self) -> RowCounts:
        """Renumbers the rows that hold a passage from 0, by tenant and in their order.

        Returns the new counts.
        """
        self._connection.execute(queries.NUMBER)
        self._connection.execute(queries.NUMBER_KEPT)
        self._connection.execute(queries.NUMBER_ADDED)
        passages = self._count_passages()
        self._counts = RowCounts(passages, passages)
        return self._counts

    def copy(self) -> None:
        """Copies the passages and tombstones into the new database."""
        execute = self._connection.execute
        execute(queries.COPY_KEPT)
        for chunk in self._range.chunks():
            self._connection.commit()
            execute(queries.COPY_ADDED, chunk)
        self._connection.commit()
        if self._has_versions:
            execute(queries.KEEP_TOMBSTONES)
        execute(queries.ADD_TOMBSTONES)
        write_tables(self._connection)
        self._connection.commit()

    def vectors(self) -> Chunks:
        """Yields all rows that hold a passage, and their vectors."""
        cursor = self._connection.execute(queries.VECTORS)
        while rows := cursor.fetchmany(_CHUNK_ROWS):
            yield _to_arrays([row for row, _ in rows], [vector for _, vector in rows])

    def put_vectors(self) -> Chunks:
        """Yields the row and vector of every put after the base, even of an overwritten put."""
        first = self._rows
        for chunk in self._range.chunks():
            vectors = [vector for (vector,) in self._connection.execute(queries.PUT_VECTORS, chunk)]
            if vectors:
                yield _to_arrays(range(first, first + len(vectors)), vectors)
            first += len(vectors)

    def log_state(self) -> State:
        """Reads the state of the log."""
        return get_state(self._connection)

    def close(self) -> None:
        """Closes the databases."""
        self._connection.close()

    def _read_range(self) -> None:
        """Lists the writes of the range in the temporary table `span`."""
        self._connection.execute(queries.SPAN)
        for chunk in self._range.chunks():
            self._connection.execute(queries.READ_SPAN, chunk)
            self._connection.commit()
        ((writes,),) = self._connection.execute(queries.SPAN_SIZE)
        if writes != self._range.upto - self._range.after:
            raise ArtefactError(
                f"the log holds only {writes} of the writes {self._range.after + 1} to "
                f"{self._range.upto}: some were trimmed before they were merged"
            )

    def _count_passages(self) -> int:
        query = "SELECT (SELECT count(*) FROM kept) + (SELECT count(*) FROM added)"
        ((count,),) = self._connection.execute(query)
        return int(count)


def _to_arrays(rows: Sequence[int], vectors: Sequence[bytes]) -> tuple[Rows, Vectors]:
    values = np.frombuffer(b"".join(vectors), "<f4").reshape(len(rows), -1)
    return np.array(rows, np.int64), values.astype(np.float32)


def _database_uri(path: Path, options: str) -> str:
    return f"{path.resolve().as_uri()}?{options}"
