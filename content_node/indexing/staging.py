"""The staging database of a build, which holds its passages and its progress.

The row of an encoded passage has a vector.
"""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.shard.store import TOKEN_BYTES, unpack_ids
from winnow.domain.passage import Passage
from winnow.domain.shard import shard_of
from winnow.domain.write import Put, Write

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
    tokens INTEGER NOT NULL,
    vector BLOB,
    version INTEGER
);
CREATE TABLE IF NOT EXISTS token_vectors (
    seq INTEGER PRIMARY KEY,
    levels BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS tombstones (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    shard INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reusable (
    title_tokens BLOB NOT NULL,
    text_tokens BLOB NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (title_tokens, text_tokens)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shards (
    shard INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (shard, seq)
) WITHOUT ROWID;
"""

StagedTokenIds = tuple[int, tuple[int, ...], tuple[int, ...]]
"""The sequence number of a passage, the token ids of its title, and those of its text."""

_BATCH = 512
_NO_METADATA = "{}"
_INSERT = (
    "INSERT INTO passages (id, title, text, metadata, title_tokens, text_tokens, text_offsets,"
    " vector, version, tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_REUSE = """
UPDATE passages SET vector = reusable.vector FROM reusable
WHERE passages.title_tokens = reusable.title_tokens
    AND passages.text_tokens = reusable.text_tokens
"""
_SELECT = (
    "SELECT id, title, text, metadata, title_tokens, text_tokens, text_offsets, vector, version"
    " FROM passages ORDER BY row"
)


class Staging:
    """Stores the passages of a build until its shards are written. Used by one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(_SCHEMA)
        columns = _column_names(self._connection)  # an older release may have begun the build
        if "version" not in columns:
            self._connection.execute("ALTER TABLE passages ADD COLUMN version INTEGER")
        if "shard" in columns:
            self._connection.execute("INSERT OR IGNORE INTO shards SELECT shard, seq FROM passages")
            self._connection.commit()

    def get(self, key: str) -> object:
        """Returns the value that was recorded under `key`; None without one."""
        query = "SELECT value FROM plan WHERE key = ?"
        row = self._connection.execute(query, (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def record(self, **values: object) -> None:
        """Records values, as JSON, durably and together with all passages added before."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO plan VALUES (?, ?)",
            [(key, json.dumps(value)) for key, value in values.items()],
        )
        self._connection.commit()

    def add(self, write: Write) -> bool:
        """Adds the passage of a put, whose vector may be empty; returns False if its id exists."""
        put = write.put
        assert put is not None
        passage = put.passage
        added = self._connection.execute(
            _INSERT.replace("INSERT", "INSERT OR IGNORE"),
            (
                *(passage.id, passage.title, passage.text, passage.metadata or _NO_METADATA),
                *(put.title_tokens, put.text_tokens, put.text_offsets, put.vector or None),
                *(write.version, len(put.words) // TOKEN_BYTES),
            ),
        )
        return added.rowcount == 1

    def copy_shard(self, store: Path, advance: Callable[[int], None]) -> None:
        """Copies the passages, vectors and tombstones of a shard's database.

        Calls `advance` with the number of passages of each batch.
        """
        uri = f"{store.resolve().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as old:
            # before format 3 passages had no versions, and there were no tombstones
            has_versions = "version" in _column_names(old)
            rows = old.execute(_SELECT if has_versions else _SELECT.replace("version", "NULL"))
            while batch := rows.fetchmany(_BATCH):
                self._connection.executemany(
                    _INSERT,
                    [(*row, (len(row[4]) + len(row[5])) // TOKEN_BYTES) for row in batch],
                )
                advance(len(batch))
            if has_versions:
                self._connection.executemany(
                    "INSERT INTO tombstones (id, version) VALUES (?, ?)",
                    old.execute("SELECT id, version FROM tombstones"),
                )

    def apply(self, write: LoggedWrite) -> None:
        """Applies a write of the log to the copied passages."""
        execute = self._connection.execute
        for table in ("passages", "tombstones"):
            execute(f"DELETE FROM {table} WHERE id = ?", (write.id,))  # noqa: S608
        if write.put is not None:
            self.add(Write(write.id, write.version, write.put))
        elif write.version is not None:
            execute("INSERT INTO tombstones (id, version) VALUES (?, ?)", (write.id, write.version))

    def partition(self, shards: int) -> None:
        """Assigns every passage and tombstone to its shard; `record` makes it durable."""
        self._connection.create_function("shard_of", 1, lambda each: shard_of(each, shards))
        execute = self._connection.execute
        execute("DELETE FROM shards")
        execute("INSERT INTO shards SELECT shard_of(id), seq FROM passages")
        execute("UPDATE tombstones SET shard = shard_of(id)")

    def keep_vectors(self) -> None:
        """Keeps all vectors for `reuse_vectors`, also when the passages are cleared."""
        self._connection.execute(
            "INSERT OR IGNORE INTO reusable SELECT title_tokens, text_tokens, vector FROM passages "
            "WHERE vector IS NOT NULL"
        )

    @property
    def has_kept_vectors(self) -> bool:
        """Whether there are vectors to reuse."""
        query = "SELECT EXISTS (SELECT 1 FROM reusable)"
        return bool(self._connection.execute(query).fetchone()[0])

    def reuse_vectors(self) -> None:
        """Gives kept vectors to passages of equal tokens, and forgets them.

        A vector depends only on the tokens and the encoder.
        """
        self._connection.execute(_REUSE)
        self._connection.execute("DELETE FROM reusable")

    def count_largest_shard(self) -> int:
        """Counts the passages of the shard with the most passages."""
        query = "SELECT max(passages) FROM (SELECT count(*) AS passages FROM shards GROUP BY shard)"
        return int(self._connection.execute(query).fetchone()[0] or 0)

    def clear(self) -> None:
        """Removes all passages and tombstones."""
        for table in ("passages", "token_vectors", "tombstones", "shards"):
            self._connection.execute(f"DROP TABLE {table}")
        self._connection.executescript(_SCHEMA)

    def counts(self) -> tuple[int, int]:
        """Counts all passages, and the passages with a vector."""
        query = "SELECT count(*), count(vector) FROM passages"
        total, encoded = self._connection.execute(query).fetchone()
        return int(total), int(encoded)

    def count_longer_than(self, tokens: int) -> int:
        """Counts the passages whose title and text together have more than `tokens` tokens."""
        query = "SELECT count(*) FROM passages WHERE tokens > ?"
        return int(self._connection.execute(query, (tokens,)).fetchone()[0])

    def pending(self, chunk: int) -> Iterator[list[StagedTokenIds]]:
        """Yields chunks of passages without a vector.

        The longest passages come first, so that the use of memory and the estimate of the remaining
        time are greatest in the beginning.
        """
        return self._chunks("vector IS NULL", chunk)

    def lacking_token_vectors(self, chunk: int) -> Iterator[list[StagedTokenIds]]:
        """Yields chunks of passages without token vectors, the longest first."""
        return self._chunks("seq NOT IN (SELECT seq FROM token_vectors)", chunk)

    def count_token_vectors(self) -> int:
        """Counts the passages with token vectors."""
        query = "SELECT count(*) FROM token_vectors"
        return int(self._connection.execute(query).fetchone()[0])

    def puts(self, batch: int) -> Iterator[list[Put]]:
        """Yields all passages with their versions, in batches."""
        query = "SELECT id, title, text, metadata, version FROM passages ORDER BY seq"
        rows = self._connection.execute(query)
        while found := rows.fetchmany(batch):
            yield [
                Put(Passage(key, title, text, "" if data == _NO_METADATA else data), version)
                for key, title, text, data, version in found
            ]

    def deletions(self) -> list[Write]:
        """Returns the deletions with a version, which outdate older puts."""
        return [
            Write(identifier, version)
            for identifier, version in self._connection.execute(
                "SELECT id, version FROM tombstones"
            )
        ]

    def passage_tokens(self) -> Iterator[NDArray[np.uint32]]:
        """Yields the token ids of title and text of every passage."""
        query = "SELECT title_tokens, text_tokens FROM passages ORDER BY seq"
        for title, text in self._connection.execute(query):
            yield np.frombuffer(title + text, "<u4")

    def expect_token_vectors(self, fingerprint: str) -> None:
        """Removes token vectors of other models than the one with this fingerprint."""
        if self.get("token_vectors") != fingerprint:
            self._connection.execute("DELETE FROM token_vectors")
            self.record(token_vectors=fingerprint)

    def store_vectors(
        self,
        vectors: Sequence[tuple[int, NDArray[np.float32]]],
        token_vectors: Sequence[tuple[int, bytes]] = (),
    ) -> None:
        """Stores vectors, and levels of token vectors, by sequence number, durably."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO token_vectors VALUES (?, ?)", token_vectors
        )
        self._connection.executemany(
            "UPDATE passages SET vector = ? WHERE seq = ?",
            [(vector.astype("<f4").tobytes(), seq) for seq, vector in vectors],
        )
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()

    def _chunks(self, condition: str, chunk: int) -> Iterator[list[StagedTokenIds]]:
        query = f"SELECT seq FROM passages WHERE {condition} ORDER BY tokens DESC, seq"  # noqa: S608
        chosen = [row[0] for row in self._connection.execute(query)]
        for start in range(0, len(chosen), chunk):
            yield [self._tokens(seq) for seq in chosen[start : start + chunk]]

    def _tokens(self, seq: int) -> StagedTokenIds:
        query = "SELECT title_tokens, text_tokens FROM passages WHERE seq = ?"
        title, text = self._connection.execute(query, (seq,)).fetchone()
        return seq, unpack_ids(title), unpack_ids(text)


def _column_names(connection: sqlite3.Connection) -> set[str]:
    return {name for _, name, *_ in connection.execute("PRAGMA table_info(passages)")}
