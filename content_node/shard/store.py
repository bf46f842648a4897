"""Reads a shard's passages from SQLite, the shard's source of truth.

The database of a served shard never changes, so readers need neither locks nor a write-ahead log.
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

from winnow.content_node.shard.field_tables import MemoryTables, StoredFields, read_tables
from winnow.content_node.shard.row_names import NO_PASSAGE, RowNames
from winnow.domain.listing import SelectedFields
from winnow.domain.passage import Passage
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.filtering import Value
from winnow.quoting import many
from winnow.reading.stored_passage import StoredPassage
from winnow.text.tokenizer import Tokens

TOKEN_BYTES = 4
_FLOAT_BYTES = 4
_CHUNK_ROWS = 4_096
"""Rows read at a time: their vectors take some megabytes."""
_VECTORS = "SELECT row, vector FROM passages WHERE row > ? ORDER BY row LIMIT ?"
_TOKENS = "SELECT row, title_tokens, text_tokens FROM passages WHERE row > ? ORDER BY row LIMIT ?"
_METADATA = (
    "SELECT row, metadata FROM passages WHERE row > ? AND metadata != '{}' ORDER BY row LIMIT ?"
)
_NO_METADATA = "{}"
"""Stored metadata of a passage without metadata."""
_CONTENT_BYTES = (
    "SELECT length(CAST(title AS BLOB)) + length(CAST(text AS BLOB))"
    " + CASE metadata WHEN '{}' THEN 0 ELSE length(CAST(metadata AS BLOB)) END"
    " FROM passages WHERE row = ?"
)


@dataclass(frozen=True, slots=True)
class PassageLocation:
    """Row of a passage, and the sequence number and version of its write."""

    row: int
    sequence: int
    version: int | None


class PassageStore:
    """Read-only access to a shard's passages, from any thread.

    SQLite can only open files by name. All connections are opened at the start, so that later
    changes of the directory do not matter. Threads share the connections. They are closed with the
    last reference to the store.
    """

    def __init__(self, file: OpenFile, connections: int = 1) -> None:
        """Opens `connections` connections: as many threads can read at the same time.

        Raises:
            ArtefactError: the file cannot be opened, or was replaced since `file` was opened.

        """
        self._file = file
        self._idle: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._connections: list[sqlite3.Connection] = []
        weakref.finalize(self, _close_all, self._connections).atexit = False
        for _ in range(connections):
            self._open()
        if not file.has_its_path:
            raise ArtefactError(
                f"{file.path} was replaced while it was opened: start the node again when the copy "
                "is complete"
            )
        columns = {name for _, name, *_ in self._select("PRAGMA table_info(passages)")}
        # formats before 3 have no writes
        self._sequence = "sequence" if "sequence" in columns else "0"
        self._version = "version" if "version" in columns else "NULL"
        tables = self._select("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._has_tombstones = ("tombstones",) in tables and bool(
            self._select("SELECT 1 FROM tombstones LIMIT 1")
        )
        self._has_fields = ("attributes",) in tables

    def free_caches(self) -> None:
        """Frees the pages that SQLite keeps of each connection, up to 2 MB.

        To be called after the shard was loaded, which reads all passages once. Questions read few.
        """
        for connection in self._connections:
            connection.execute("PRAGMA shrink_memory").close()

    def load(self, rows: Sequence[int]) -> list[StoredPassage]:
        """Returns the passages of `rows`, in this order, without precomputed states.

        Raises:
            ArtefactError: a row is missing, or the file was changed.

        """
        return [self._load_one(row) for row in rows]

    def load_fields(self, rows: Sequence[int], fields: SelectedFields) -> list[Passage]:
        """Returns some fields of the rows' passages; the other fields are empty. Raises as `load`.

        A row takes some microseconds, and several rows share a connection.
        """
        wanted = ("title", fields.title), ("text", fields.text), ("metadata", fields.metadata)
        columns = ", ".join(name if is_wanted else "''" for name, is_wanted in wanted)
        query = f"SELECT id, {columns} FROM passages WHERE row = ?"  # noqa: S608
        return [
            Passage(identifier, title, text, "" if metadata == _NO_METADATA else metadata)
            for identifier, title, text, metadata in self._select_rows(query, rows)
        ]

    def content_bytes(self, rows: Sequence[int]) -> int:
        """Returns the size of the rows' titles, texts and metadata, in bytes; raises as `load`.

        A row takes some microseconds.
        """
        return sum(size for (size,) in self._select_rows(_CONTENT_BYTES, rows))

    def ids_and_sequences(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        """Returns each row's passage id and the sequence number of its write; raises as `load`."""
        query = f"SELECT id, {self._sequence} FROM passages WHERE row = ?"  # noqa: S608
        return [
            (str(identifier), self._checked_sequence(sequence))
            for identifier, sequence in self._select_rows(query, rows)
        ]

    def row_names(self, rows: int) -> RowNames:
        """Returns the names of all rows of a shard with `rows` rows; raises as `load`."""
        query = f"SELECT row, {self._sequence}, id FROM passages WHERE row > ? ORDER BY row LIMIT ?"  # noqa: S608
        ids, lengths = [], np.zeros(rows, np.int64)
        sequences = np.full(rows, NO_PASSAGE, np.int64)
        for chunk in self._chunks(query):
            encoded = [str(identifier).encode() for _, _, identifier in chunk]
            numbers = [row for row, _, _ in chunk]
            lengths[numbers] = [len(each) for each in encoded]
            sequences[numbers] = [self._checked_sequence(sequence) for _, sequence, _ in chunk]
            ids.append(b"".join(encoded))
        ends = np.cumsum(lengths)
        return RowNames(self._file, b"".join(ids), ends, sequences, by_id=self.row_numbers_by_id)

    def locate(self, identifier: str) -> PassageLocation | None:
        """Returns the location of a passage; None if the shard lacks it. Raises as `load`."""
        return self.locate_all([identifier])[0]

    def locate_all(self, identifiers: Sequence[str]) -> list[PassageLocation | None]:
        """Returns the location of each passage, or None; raises as `load`."""
        query = f"SELECT row, {self._sequence}, {self._version} FROM passages WHERE id = ?"  # noqa: S608
        with self._connection() as connection:
            found = [connection.execute(query, (each,)).fetchone() for each in identifiers]
        return [
            each and PassageLocation(each[0], self._checked_sequence(each[1]), each[2])
            for each in found
        ]

    def locate_prefix(self, prefix: str) -> list[tuple[str, PassageLocation]]:
        """Returns the ids that begin with `prefix`, with their locations. Raises as `load`.

        `prefix` must end with a character of ASCII.
        """
        found = self._select(
            f"SELECT id, row, {self._sequence}, {self._version} FROM passages"  # noqa: S608
            " WHERE id >= ? AND id < ?",
            (prefix, _end_of_prefix(prefix)),
        )
        return [
            (str(each), PassageLocation(row, self._checked_sequence(sequence), version))
            for each, row, sequence, version in found
        ]

    def deletions_with_prefix(self, prefix: str) -> list[tuple[str, int]]:
        """Returns the deletions with a version whose ids begin with `prefix`, as `locate_prefix`
        does.
        """
        if not self._has_tombstones:
            return []
        query = "SELECT id, version FROM tombstones WHERE id >= ? AND id < ?"
        return self._select(query, (prefix, _end_of_prefix(prefix)))

    def deletion_version(self, identifier: str) -> int | None:
        """Returns the version of a passage's deletion; None without a deletion or a version."""
        if not self._has_tombstones:
            return None
        found = self._select("SELECT version FROM tombstones WHERE id = ?", (identifier,))
        return int(found[0][0]) if found else None

    def row_numbers(self) -> NDArray[np.int64]:
        """Returns the rows that hold a passage, ascending."""
        found = self._select("SELECT row FROM passages")  # reads the index of ids, which is small
        return np.sort(np.fromiter((row for (row,) in found), np.int64, len(found)))

    def row_numbers_by_id(self) -> NDArray[np.int64]:
        """Returns the rows that hold a passage, ordered by id."""
        found = self._select("SELECT row FROM passages ORDER BY id")
        return np.fromiter((row for (row,) in found), np.int64, len(found))

    def check(self, passages: int, dimension: int, rows: int) -> None:
        """Raises ArtefactError unless there are `passages` passages, with vectors of `dimension`,
        in rows 0 to `rows` - 1.
        """
        ((count,),) = self._select("SELECT count(*) FROM passages")
        if count != passages:
            raise ArtefactError(
                f"{self._file.path} holds {many(count, 'passage')}, its manifest says {passages}"
            )
        for end in ("min", "max"):  # one query for both would scan every row
            ((row,),) = self._select(f"SELECT {end}(row) FROM passages")  # noqa: S608
            if row is not None and not 0 <= row < rows:
                raise ArtefactError(
                    f"{self._file.path} has a passage in row {row}, its manifest says {rows} rows"
                )
        for (size,) in self._select("SELECT length(vector) FROM passages LIMIT 1"):
            self._check_vector(dimension, size)

    def vectors(self, dimension: int) -> NDArray[np.float32]:
        """Returns every vector in row order: float32 [passages, dimension].

        Raises:
            ArtefactError: a vector has another dimension.

        """
        chunks = [np.empty((0, dimension), np.float32)]
        for rows in self._chunks(_VECTORS):
            for _, vector in rows:
                self._check_vector(dimension, len(vector))
            data = b"".join(vector for _, vector in rows)
            chunks.append(np.frombuffer(data, "<f4").reshape(-1, dimension).astype(np.float32))
        return np.concatenate(chunks)

    def tokens(
        self, vocabulary: int, rows: int
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        """Returns the tokens of all titles and texts, row after row, and the end of each row's.

        The shapes are [tokens] and [rows]. The tokens have the smallest type that holds them and
        every token of `vocabulary`.
        """
        smallest = np.min_scalar_type(max(vocabulary - 1, 0))
        parts, lengths = [np.empty(0, smallest)], np.zeros(rows, np.int64)
        for chunk in self._chunks(_TOKENS):
            for row, title, text in chunk:
                tokens = np.frombuffer(title + text, "<u4")
                lengths[row] = len(tokens)
                # a later put may bring tokens beyond the vocabulary
                fits = np.min_scalar_type(tokens.max(initial=0))
                parts.append(tokens.astype(np.promote_types(smallest, fits)))
        return np.concatenate(parts), np.cumsum(lengths)

    def open_fields(self, rows: int) -> StoredFields:
        """Returns the index of metadata fields of a shard with `rows` rows.

        For a database of an older format, which has no tables of fields, the tables are made in
        memory. This takes seconds for 100 000 passages with metadata.
        """
        select = self._select if self._has_fields else self._tables_in_memory().select
        return StoredFields(select, rows)

    def fields_match_metadata(self) -> bool:
        """Whether the tables of fields agree with the metadata of the passages."""
        return not self._has_fields or (
            read_tables(self._select) == read_tables(self._tables_in_memory().select)
        )

    def close(self) -> None:
        """Closes every connection."""
        _close_all(self._connections)

    def _load_one(self, row: int) -> StoredPassage:
        ((identifier, title, text, metadata, title_tokens, text_tokens, offsets),) = (
            self._select_rows(
                "SELECT id, title, text, metadata, title_tokens, text_tokens, text_offsets"
                " FROM passages WHERE row = ?",
                (row,),
            )
        )
        tokens = Tokens(unpack_ids(text_tokens), _pairs(unpack_ids(offsets)))
        passage = Passage(identifier, title, text, "" if metadata == _NO_METADATA else metadata)
        return StoredPassage(passage, unpack_ids(title_tokens), tokens)

    def _checked_sequence(self, sequence: object) -> int:
        if not isinstance(sequence, int) or sequence < 0:
            raise ArtefactError(
                f"{self._file.path} holds a write with sequence number {sequence!r}: build the "
                "index again"
            )
        return sequence

    def _tables_in_memory(self) -> MemoryTables:
        return MemoryTables(row for rows in self._chunks(_METADATA) for row in rows)

    def _check_vector(self, dimension: int, size: int) -> None:
        if size != dimension * _FLOAT_BYTES:
            raise ArtefactError(
                f"{self._file.path} holds vectors of {size / _FLOAT_BYTES:g} values, its manifest "
                f"says {dimension}"
            )

    def _chunks(self, query: str) -> Iterator[list[Any]]:
        """Yields the results of `query` in chunks, so that other threads can use the connection in
        between. The first column is the row.
        """
        last = -1
        while rows := self._select(query, (last, _CHUNK_ROWS)):
            last = rows[-1][0]
            yield rows

    def _select_rows(self, query: str, rows: Sequence[int]) -> list[Any]:
        """Returns the one result of `query` for each of `rows`."""
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
        """Lends a connection. Results are valid only if the context ends without an error."""
        connection = self._idle.get()
        try:
            yield connection
        except sqlite3.Error as error:
            raise ArtefactError(f"{self._file.path} cannot be read: {error}") from error
        finally:
            self._idle.put(connection)
        # SQLite reads zeros beyond the end of a truncated file
        self._file.check()

    def _open(self) -> None:
        uri = f"{self._file.path.resolve().as_uri()}?mode=ro&immutable=1"
        try:
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            # a mapped page of a truncated file would end the process
            connection.execute("PRAGMA mmap_size = 0").close()
        except sqlite3.Error as error:
            raise ArtefactError(f"{self._file.path} cannot be opened: {error}") from error
        self._connections.append(connection)
        self._idle.put(connection)


def _close_all(connections: Iterable[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()


def _end_of_prefix(prefix: str) -> str:
    """Returns the first text in the order of UTF-8 that follows all texts with a prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def unpack_ids(blob: bytes) -> tuple[int, ...]:
    """Unpacks integers that were packed as little-endian uint32."""
    return tuple(np.frombuffer(blob, dtype="<u4").tolist())


def _pairs(values: Sequence[int]) -> tuple[tuple[int, int], ...]:
    even: Iterator[int] = iter(values)
    return tuple(zip(even, even, strict=True))
