"""Passages in SQLite: the one source of truth of a shard.

Knows the schema and how rows become passages. A served shard is immutable, so that readers need
neither locks nor a write-ahead log.
"""

import contextlib
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import LifoQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from content_node.shard.attribute_tables import AttributesInMemory
from content_node.shard.attributes import Attributes
from winnow.domain.passage import Passage
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.filtering import Value
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
_VECTORS = "SELECT row, vector FROM passages WHERE row > ? ORDER BY row LIMIT ?"
_TOKENS = "SELECT row, title_tokens, text_tokens FROM passages WHERE row > ? ORDER BY row LIMIT ?"
_METADATA = (
    "SELECT row, metadata FROM passages WHERE row > ? AND metadata != '{}' ORDER BY row LIMIT ?"
)
_NONE = "{}"
"""How a passage without metadata is stored."""
_AGAIN = "start the node again when nobody copies any more"


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as the reader needs it."""

    passage: Passage
    title_ids: tuple[int, ...]
    tokens: Tokens


class PassageStore:
    """Read-only access to a shard's passages, from any thread.

    The file is opened here and never again by its name, so that what was verified is what is read,
    whatever becomes of the directory. SQLite can open files by name only: a few connections are
    opened at once, and threads take turns. When nobody holds the store any more all are closed.
    """

    def __init__(self, file: OpenFile, connections: int = 1) -> None:
        """`connections` is how many threads can read at the same time.

        Raises:
            ArtefactError: it cannot be opened, or its name leads to another file by now.

        """
        self._file = file
        self._free: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._opened: list[sqlite3.Connection] = []
        weakref.finalize(self, _close_all, self._opened).atexit = False
        for _ in range(connections):
            self._open()
        if not file.named:
            raise ArtefactError(f"{file.path} was replaced while it was opened: {_AGAIN}")

    def load(self, rows: Sequence[int]) -> list[StoredPassage]:
        """The passages of `rows`, in that order.

        Raises:
            ArtefactError: there is no such row, or the file was written to.

        """
        return [self._one(row) for row in rows]

    def ids(self, rows: Sequence[int]) -> list[str]:
        """The passage ids of `rows`, in that order; raises ArtefactError as `load`."""
        found = self._each("SELECT id FROM passages WHERE row = ?", rows)
        return [str(identifier) for (identifier,) in found]

    def count(self) -> int:
        """The number of passages."""
        ((count,),) = self._select("SELECT count(*) FROM passages")
        return int(count)

    def expect(self, passages: int, dimension: int) -> None:
        """Raises ArtefactError if these are not so many passages, with vectors of `dimension`."""
        if (found := self.count()) != passages:
            raise ArtefactError(
                f"{self._file.path} holds {found} passages, its manifest says {passages}"
            )
        for (size,) in self._select("SELECT length(vector) FROM passages LIMIT 1"):
            self._expect(dimension, size)

    def vectors(self, dimension: int) -> NDArray[np.float32]:
        """Every vector in row order: float32 [passages, dimension].

        Raises:
            ArtefactError: one is of another dimension.

        """
        return np.concatenate(
            [np.empty((0, dimension), np.float32), *self.vector_chunks(dimension)]
        )

    def vector_chunks(self, dimension: int) -> Iterator[NDArray[np.float32]]:
        """The same, a few thousand rows at a time: float32 [rows, dimension] each."""
        for rows in self._chunks(_VECTORS):
            for _, vector in rows:
                self._expect(dimension, len(vector))
            data = b"".join(vector for _, vector in rows)
            yield np.frombuffer(data, dtype="<f4").reshape(-1, dimension).astype(np.float32)

    def words(self, vocabulary: int) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        """Tokens of titles and texts, row after row, and where those of each row end: [tokens] of
        the smallest type that holds a token of `vocabulary`, and [passages].
        """
        chunks = self._chunks(_TOKENS)
        smallest = np.min_scalar_type(max(vocabulary - 1, 0))
        own = [
            np.frombuffer(title + text, "<u4").astype(smallest)
            for rows in chunks
            for _, title, text in rows
        ]
        ends = np.cumsum([len(tokens) for tokens in own], dtype=np.int64)
        return np.concatenate([np.empty(0, smallest), *own]), ends

    def attributes(self, rows: int) -> Attributes:
        """The metadata as filters see it, of a shard with so many rows.

        A database that was written before there were filters is read for it, and tables are made in
        memory: that takes seconds for 100 000 passages with metadata.
        """
        if self._select("SELECT 1 FROM sqlite_master WHERE name = 'attributes'"):
            return Attributes(self._select, rows)
        chunks = self._chunks(_METADATA)
        made = AttributesInMemory(row for rows in chunks for row in rows)
        return Attributes(made.select, rows)

    def close(self) -> None:
        """Closes every connection."""
        _close_all(self._opened)

    def _one(self, row: int) -> StoredPassage:
        ((identifier, title, text, metadata, title_tokens, text_tokens, offsets),) = self._each(
            "SELECT id, title, text, metadata, title_tokens, text_tokens, text_offsets"
            " FROM passages WHERE row = ?",
            (row,),
        )
        tokens = Tokens(unpack_ids(text_tokens), _pairs(unpack_ids(offsets)))
        passage = Passage(identifier, title, text, "" if metadata == _NONE else metadata)
        return StoredPassage(passage, unpack_ids(title_tokens), tokens)

    def _expect(self, dimension: int, size: int) -> None:
        if size != dimension * _FLOAT_BYTES:
            raise ArtefactError(
                f"{self._file.path} holds vectors of {size / _FLOAT_BYTES:g} values, its manifest "
                f"says {dimension}"
            )

    def _chunks(self, query: str) -> Iterator[list[Any]]:
        """What `query` selects after a row, a number of rows at a time; its first column is the
        row. Others get their turns in between.
        """
        last = -1
        while rows := self._select(query, (last, _CHUNK)):
            last = rows[-1][0]
            yield rows

    def _each(self, query: str, rows: Sequence[int]) -> list[Any]:
        """The one result for each of `rows`."""
        with self._connection() as connection:
            found = [connection.execute(query, (row,)).fetchone() for row in rows]
        if None in found:
            raise ArtefactError(f"{self._file.path} has no row {rows[found.index(None)]}")
        return found

    def _select(self, query: str, values: Sequence[Value] = ()) -> list[Any]:
        with self._connection() as connection:
            return connection.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else uses; what was read with it is good if this ends well."""
        connection = self._free.get()
        try:
            yield connection
        except sqlite3.Error as error:
            raise ArtefactError(f"{self._file.path} cannot be read: {error}") from error
        finally:
            self._free.put(connection)
        # SQLite takes what is beyond the end of a file that was cut short for zeros
        self._file.check()

    def _open(self) -> None:
        uri = f"{self._file.path.resolve().as_uri()}?mode=ro&immutable=1"
        try:
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            # a mapped page of a file that was cut short would end the process
            connection.execute("PRAGMA mmap_size = 0").close()
        except sqlite3.Error as error:
            raise ArtefactError(f"{self._file.path} cannot be opened: {error}") from error
        self._opened.append(connection)
        self._free.put(connection)


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
