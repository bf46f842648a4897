"""Passages in SQLite: the one source of truth of a shard.

Knows the schema and how rows become passages. A served shard is immutable, so that readers need
neither locks nor a write-ahead log.
"""

import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.domain.passage import Passage
from winnow.errors import ArtefactError
from winnow.text.tokenizer import Tokens

SCHEMA = """
CREATE TABLE passages (
    row INTEGER PRIMARY KEY,      -- 0 .. n-1, the label in the graph
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,       -- JSON
    title_tokens BLOB NOT NULL,   -- little-endian uint32, no special tokens
    text_tokens BLOB NOT NULL,    -- little-endian uint32, no special tokens
    text_offsets BLOB NOT NULL,   -- little-endian uint32 pairs: characters of each text token
    vector BLOB NOT NULL          -- little-endian float32
);
"""

TOKEN_BYTES = 4
_FLOAT_BYTES = 4
_CHUNK = 4_096
"""Rows of vectors in memory at a time: some megabytes."""
_NONE = "{}"
"""How a passage without metadata is stored."""


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as the reader needs it."""

    passage: Passage
    title_ids: tuple[int, ...]
    tokens: Tokens


class PassageStore:
    """Read-only access to a shard's passages, from any thread.

    Each thread has a connection of its own. When nobody holds the store any more all are closed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        weakref.finalize(self, _close_all, self._opened).atexit = False

    def load(self, rows: Sequence[int]) -> list[StoredPassage]:
        """The passages of `rows`, in that order.

        Raises:
            ArtefactError: there is no such row.

        """
        return [self._one(row) for row in rows]

    def ids(self, rows: Sequence[int]) -> list[str]:
        """The passage ids of `rows`, in that order."""
        query = "SELECT id FROM passages WHERE row = ?"
        connection = self._connection()
        return [str(connection.execute(query, (row,)).fetchone()[0]) for row in rows]

    def count(self) -> int:
        """The number of passages."""
        return int(self._connection().execute("SELECT count(*) FROM passages").fetchone()[0])

    def expect(self, passages: int, dimension: int) -> None:
        """Raises ArtefactError if these are not so many passages, with vectors of `dimension`."""
        try:
            found = self.count()
            first = self._connection().execute("SELECT vector FROM passages LIMIT 1").fetchone()
        except sqlite3.Error as error:
            raise ArtefactError(f"{self._path} holds no passages: {error}") from error
        if found != passages:
            raise ArtefactError(
                f"{self._path} holds {found} passages, its manifest says {passages}"
            )
        if first is not None and len(first[0]) != dimension * _FLOAT_BYTES:
            raise ArtefactError(
                f"{self._path} holds vectors of {len(first[0]) // _FLOAT_BYTES} values, its "
                f"manifest says {dimension}"
            )

    def vectors(self, dimension: int) -> NDArray[np.float32]:
        """Every vector in row order: float32 [passages, dimension]."""
        rows = self._connection().execute("SELECT vector FROM passages ORDER BY row")
        data = b"".join(row[0] for row in rows)
        return np.frombuffer(data, dtype="<f4").reshape(-1, dimension).astype(np.float32)

    def vector_chunks(self, dimension: int) -> Iterator[NDArray[np.float32]]:
        """The same, a few thousand rows at a time: float32 [rows, dimension] each."""
        rows = self._connection().execute("SELECT vector FROM passages ORDER BY row")
        while data := b"".join(row[0] for row in rows.fetchmany(_CHUNK)):
            yield np.frombuffer(data, dtype="<f4").reshape(-1, dimension).astype(np.float32)

    def words(self, vocabulary: int) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        """Tokens of titles and texts, row after row, and where those of each row end: [tokens] of
        the smallest type that holds a token of `vocabulary`, and [passages].
        """
        rows = self._connection().execute(
            "SELECT title_tokens, text_tokens FROM passages ORDER BY row"
        )
        smallest = np.min_scalar_type(max(vocabulary - 1, 0))
        own = [np.frombuffer(title + text, "<u4").astype(smallest) for title, text in rows]
        ends = np.cumsum([len(tokens) for tokens in own], dtype=np.int64)
        return np.concatenate([np.empty(0, smallest), *own]), ends

    def close(self) -> None:
        """Closes this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._opened.remove(connection)
            self._local.connection = None

    def _one(self, row: int) -> StoredPassage:
        found = (
            self._connection()
            .execute(
                "SELECT id, title, text, metadata, title_tokens, text_tokens, text_offsets"
                " FROM passages WHERE row = ?",
                (row,),
            )
            .fetchone()
        )
        if found is None:
            raise ArtefactError(f"{self._path} has no row {row}")
        identifier, title, text, metadata, title_tokens, text_tokens, offsets = found
        tokens = Tokens(unpack_ids(text_tokens), _pairs(unpack_ids(offsets)))
        passage = Passage(identifier, title, text, "" if metadata == _NONE else metadata)
        return StoredPassage(passage, unpack_ids(title_tokens), tokens)

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            uri = f"{self._path.resolve().as_uri()}?mode=ro&immutable=1"
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            self._local.connection = connection
            self._opened.append(connection)
        return connection


def _close_all(connections: Iterable[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()


def pack_ids(values: Iterable[int]) -> bytes:
    """Little-endian uint32."""
    return np.fromiter(values, dtype="<u4").tobytes()


def unpack_ids(blob: bytes) -> tuple[int, ...]:
    """What `pack_ids` packed."""
    return tuple(np.frombuffer(blob, dtype="<u4").tolist())


def pack_offsets(offsets: Iterable[tuple[int, int]]) -> bytes:
    """Little-endian uint32 pairs."""
    return pack_ids(value for pair in offsets for value in pair)


def _pairs(values: Sequence[int]) -> tuple[tuple[int, int], ...]:
    even: Iterator[int] = iter(values)
    return tuple(zip(even, even, strict=True))
