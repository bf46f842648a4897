"""The staging database of a build: its passages, and the progress of the build.

Knows the staging schema. An encoded passage is a row with a vector.
"""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.live.entry import Logged
from winnow.content_node.shard.store import TOKEN_BYTES, unpack_ids
from winnow.domain.write import Write

_SCHEMA = """
CREATE TABLE IF NOT EXISTS plan (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS passages (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    title_tokens BLOB NOT NULL,
    text_tokens BLOB NOT NULL,
    text_offsets BLOB NOT NULL,
    shard INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    vector BLOB,
    version INTEGER
);
CREATE TABLE IF NOT EXISTS tombstones (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    shard INTEGER NOT NULL
) WITHOUT ROWID;
"""

_BATCH = 512
_NO_METADATA = "{}"
_INSERT = (
    "INSERT INTO passages (id, title, text, metadata, title_tokens, text_tokens, text_offsets,"
    " vector, version, shard, tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_TAKEN = (
    "SELECT id, title, text, metadata, title_tokens, text_tokens, text_offsets, vector, version"
    " FROM passages ORDER BY row"
)


class Staging:
    """Passages that are becoming an index. Used by one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(_SCHEMA)
        if "version" not in _columns(self._connection):  # an older version has begun it
            self._connection.execute("ALTER TABLE passages ADD COLUMN version INTEGER")

    def get(self, key: str) -> object:
        """The value that was noted under `key`, or None."""
        query = "SELECT value FROM plan WHERE key = ?"
        found = self._connection.execute(query, (key,)).fetchone()
        return None if found is None else json.loads(found[0])

    def note(self, **values: object) -> None:
        """Notes values (JSON) durably, together with everything added before."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO plan VALUES (?, ?)",
            [(key, json.dumps(value)) for key, value in values.items()],
        )
        self._connection.commit()

    def add(self, write: Write, shard: int) -> bool:
        """Adds the passage of a put, whose vector may be empty; returns False if its id is there
        already.
        """
        put = write.put
        assert put is not None
        passage = put.passage
        added = self._connection.execute(
            _INSERT.replace("INSERT", "INSERT OR IGNORE"),
            (
                *(passage.id, passage.title, passage.text, passage.metadata or _NO_METADATA),
                *(put.title_tokens, put.text_tokens, put.text_offsets, put.vector or None),
                *(write.version, shard, len(put.words) // TOKEN_BYTES),
            ),
        )
        return added.rowcount == 1

    def copy(
        self, store: Path, shard_of: Callable[[str], int], advance: Callable[[int], None]
    ) -> None:
        """Adds the passages of a shard's database, with their vectors, and the versions of
        deletions. Calls `advance` with numbers of passages.
        """
        uri = f"{store.resolve().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as old:
            # before format 3 nothing had a version
            knows_writes = "version" in _columns(old)
            rows = old.execute(_TAKEN if knows_writes else _TAKEN.replace("version", "NULL"))
            while batch := rows.fetchmany(_BATCH):
                self._connection.executemany(
                    _INSERT,
                    [
                        (*row, shard_of(row[0]), (len(row[4]) + len(row[5])) // TOKEN_BYTES)
                        for row in batch
                    ],
                )
                advance(len(batch))
            if knows_writes:
                self._connection.executemany(
                    "INSERT INTO tombstones VALUES (?, ?, ?)",
                    [
                        (name, version, shard_of(name))
                        for name, version in old.execute("SELECT id, version FROM tombstones")
                    ],
                )

    def apply(self, write: Logged, shard: int) -> None:
        """Applies a write that came after the copied passages."""
        run = self._connection.execute
        for table in ("passages", "tombstones"):
            run(f"DELETE FROM {table} WHERE id = ?", (write.id,))  # noqa: S608
        if write.put is not None:
            self.add(Write(write.id, write.version, write.put), shard)
        elif write.version is not None:
            run("INSERT INTO tombstones VALUES (?, ?, ?)", (write.id, write.version, shard))

    def clear(self) -> None:
        self._connection.execute("DELETE FROM passages")
        self._connection.execute("DELETE FROM tombstones")
        self._connection.commit()

    def counts(self) -> tuple[int, int]:
        """The number of passages, and of passages with a vector."""
        query = "SELECT count(*), count(vector) FROM passages"
        total, encoded = self._connection.execute(query).fetchone()
        return int(total), int(encoded)

    def longer_than(self, tokens: int) -> int:
        """The number of passages whose title and text have more than `tokens` tokens together."""
        query = "SELECT count(*) FROM passages WHERE tokens > ?"
        return int(self._connection.execute(query, (tokens,)).fetchone()[0])

    def pending(self, chunk: int) -> Iterator[list[tuple[int, tuple[int, ...], tuple[int, ...]]]]:
        """Chunks of (sequence number, title ids, text ids) of passages without a vector.

        They are sorted by length. The longest come first, so that the use of memory and the
        estimate of the time left are greatest in the beginning.
        """
        query = "SELECT seq FROM passages WHERE vector IS NULL ORDER BY tokens DESC, seq"
        waiting = [row[0] for row in self._connection.execute(query)]
        for start in range(0, len(waiting), chunk):
            yield [self._tokens(seq) for seq in waiting[start : start + chunk]]

    def words(self) -> Iterator[NDArray[np.uint32]]:
        """The tokens of every passage, title and text."""
        query = "SELECT title_tokens, text_tokens FROM passages ORDER BY seq"
        for title, text in self._connection.execute(query):
            yield np.frombuffer(title + text, "<u4")

    def encoded(self, vectors: Sequence[tuple[int, NDArray[np.float32]]]) -> None:
        """Stores vectors by sequence number, durably."""
        self._connection.executemany(
            "UPDATE passages SET vector = ? WHERE seq = ?",
            [(vector.astype("<f4").tobytes(), seq) for seq, vector in vectors],
        )
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()

    def _tokens(self, seq: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        query = "SELECT title_tokens, text_tokens FROM passages WHERE seq = ?"
        title, text = self._connection.execute(query, (seq,)).fetchone()
        return seq, unpack_ids(title), unpack_ids(text)


def _columns(connection: sqlite3.Connection) -> set[str]:
    return {name for _, name, *_ in connection.execute("PRAGMA table_info(passages)")}
