"""The passages of the next generation: those of base and log that are left, in one new database.

Knows SQL. Rows are copied from database to database as they are; nothing is encoded again.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from content_node.live.schema import State, get_state
from content_node.shard.attribute_tables import write_attributes
from content_node.shard.schema import SCHEMA

Chunks = Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]
"""Rows, and their vectors: float32 [rows, dimension], a number of rows at a time."""

_BASE = "CREATE TEMP VIEW old AS SELECT * FROM base.passages"
_BASE_AS_BUILT = """
CREATE TEMP VIEW old AS SELECT *, 0 AS sequence, NULL AS version FROM base.passages
"""
"""Before format 3 no passage knew the write that put it: there were none."""
_LATEST = """
CREATE TEMP TABLE latest AS SELECT id, max(sequence) AS sequence FROM log.writes
    WHERE sequence > :after AND sequence <= :upto GROUP BY id
"""
_BY_ID = "CREATE UNIQUE INDEX temp.by_id ON latest (id)"
_BY_SEQUENCE = "CREATE UNIQUE INDEX temp.by_sequence ON latest (sequence)"
_DEAD = """
CREATE TEMP TABLE dead AS SELECT row FROM old WHERE id IN (SELECT id FROM latest) ORDER BY row
"""
_KEPT = """
CREATE TEMP TABLE kept AS SELECT row AS old, row FROM old
    WHERE row NOT IN (SELECT row FROM dead) ORDER BY row
"""
_ADDED = """
CREATE TEMP TABLE added AS SELECT * FROM (
    SELECT sequence, :rows + row_number() OVER (ORDER BY sequence) - 1 AS row FROM log.writes
    WHERE sequence > :after AND sequence <= :upto AND vector IS NOT NULL
) WHERE sequence IN (SELECT sequence FROM latest) ORDER BY row
"""
"""Every put has a row of its own, as in the memory of the node; those that were overwritten later
leave holes.
"""
_PUTS = """
SELECT count(*) FROM log.writes
    WHERE sequence > :after AND sequence <= :upto AND vector IS NOT NULL
"""
_NUMBER_KEPT = """
UPDATE kept SET row = anew.row
    FROM (SELECT old, row_number() OVER (ORDER BY old) - 1 AS row FROM kept) AS anew
    WHERE anew.old = kept.old
"""
_NUMBER_ADDED = """
UPDATE added SET row = anew.row FROM (
    SELECT sequence, (SELECT count(*) FROM kept) + row_number() OVER (ORDER BY sequence) - 1 AS row
    FROM added
) AS anew WHERE anew.sequence = added.sequence
"""
_COPY_KEPT = """
INSERT INTO main.passages (row, id, title, text, metadata, title_tokens, text_tokens, text_offsets,
    vector, sequence, version)
    SELECT kept.row, id, title, text, metadata, title_tokens, text_tokens, text_offsets,
        vector, sequence, version
    FROM kept CROSS JOIN old ON old.row = kept.old
"""
"""A cross join reads the left table first: both are in the order of rows."""
_COPY_ADDED = """
INSERT INTO main.passages (row, id, title, text, metadata, title_tokens, text_tokens, text_offsets,
    vector, sequence, version)
    SELECT added.row, id, title, text, iif(metadata = '', '{}', metadata), title_tokens,
        text_tokens, text_offsets, vector, added.sequence, version
    FROM added CROSS JOIN log.writes AS new ON new.sequence = added.sequence
"""
_KEEP_TOMBSTONES = """
INSERT INTO main.tombstones SELECT id, version FROM base.tombstones
    WHERE id NOT IN (SELECT id FROM latest)
"""
_ADD_TOMBSTONES = """
INSERT INTO main.tombstones SELECT id, version FROM log.writes
    WHERE sequence IN (SELECT sequence FROM latest) AND vector IS NULL AND version IS NOT NULL
"""
_VECTORS = "SELECT row, vector FROM main.passages ORDER BY row"
_PUT_VECTORS = """
SELECT :rows + row_number() OVER (ORDER BY sequence) - 1, vector FROM log.writes
    WHERE sequence > :after AND sequence <= :upto AND vector IS NOT NULL ORDER BY sequence
"""
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
        run(_BASE if self._knows_writes else _BASE_AS_BUILT)
        run(_LATEST, self._span)
        run(_BY_ID)
        run(_BY_SEQUENCE)
        run(_DEAD)
        run(_KEPT)
        run(_ADDED, {**self._span, "rows": self._rows})
        ((puts,),) = run(_PUTS, self._span)
        self._counts = Counts(self._rows + puts, self._passages())
        return self._counts

    def dead(self) -> list[int]:
        """Rows that hold nothing any more, and did in the base, or were put since."""
        dead = [row for (row,) in self._connection.execute("SELECT row FROM dead")]
        added = {row for (row,) in self._connection.execute("SELECT row FROM added")}
        return dead + [row for row in range(self._rows, self._counts.rows) if row not in added]

    def number_anew(self) -> Counts:
        """Numbers the rows that are left from 0, in their order."""
        self._connection.execute(_NUMBER_KEPT)
        self._connection.execute(_NUMBER_ADDED)
        self._counts = Counts(self._passages(), self._passages())
        return self._counts

    def copy(self) -> None:
        """Fills the new database."""
        run = self._connection.execute
        run(_COPY_KEPT)
        run(_COPY_ADDED)
        if self._knows_writes:
            run(_KEEP_TOMBSTONES)
        run(_ADD_TOMBSTONES)
        write_attributes(self._connection)
        self._connection.commit()

    def vectors(self) -> Chunks:
        """All rows that hold a passage, and their vectors."""
        return self._chunks(_VECTORS)

    def put_vectors(self) -> Chunks:
        """The row of every put since the base, and its vector, also of those that are dead."""
        return self._chunks(_PUT_VECTORS, {**self._span, "rows": self._rows})

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
