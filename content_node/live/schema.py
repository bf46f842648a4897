"""The tables of the log's database, and the conversion between their rows and writes.

Checksums cover all values. The checksum of a write covers all earlier writes, too.
"""

import hashlib
import sqlite3
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from winnow.content_node.live.log_entry import LoggedWrite, first_link, next_link
from winnow.content_node.live.word_counts import WordTally
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage
from winnow.errors import ArtefactError

SCHEMA = """
CREATE TABLE writes (
    sequence INTEGER PRIMARY KEY,  -- without gaps, over the life of the log
    id TEXT NOT NULL,
    version INTEGER,               -- NULL: none
    removed BLOB,                  -- tokens of the passage that was there before; NULL: none was
    title TEXT,                    -- NULL, and all below but the last: a deletion
    text TEXT,
    metadata TEXT,
    title_tokens BLOB,             -- little-endian uint32
    text_tokens BLOB,
    text_offsets BLOB,
    vector BLOB,                   -- little-endian float32
    link BLOB NOT NULL             -- checksum of this write and of all before it
);
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    log_id TEXT NOT NULL,
    last INTEGER NOT NULL,         -- the sequence number of the last write
    link BLOB NOT NULL,            -- of the last write
    place TEXT NOT NULL,           -- in the log that this one follows; empty: it follows none
    checksum BLOB NOT NULL
);
CREATE TABLE trimmed (             -- what is left of writes that are in the base
    one INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL,
    link BLOB NOT NULL,            -- of the last of them
    words BLOB NOT NULL,           -- by how much they changed the count of each token: int32
    passages INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    checksum BLOB NOT NULL
);
"""
INSERT = "INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT = "SELECT * FROM writes WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"
_DELETION = (None,) * 7
"""The columns of a passage in the row of a deletion."""


@dataclass(frozen=True, slots=True)
class State:
    """The id of a log, and the position at which it ends."""

    log_id: str
    last: int
    """The number of the last write; 0 if there was none."""
    link: bytes
    """The checksum of all writes up to the last one."""
    journal_position: str = ""
    """The position of the last applied entry of a journal; empty if the log follows none."""


@dataclass(frozen=True, slots=True)
class TrimmedWrites:
    """Summary of the writes that were trimmed from the log, since a base holds them."""

    last: int
    """The number of the last trimmed write; 0 if none was trimmed."""
    link: bytes
    """The checksum of all writes up to that one."""
    words: WordTally
    """The changes of word counts by the trimmed writes."""


def create_tables(connection: sqlite3.Connection, log_id: str) -> State:
    """Creates the tables of a new log, without committing; returns its state."""
    link = first_link(log_id, 0)
    state = State(log_id, 0, link)
    for statement in SCHEMA.split(";\n"):
        connection.execute(statement)
    put_state(connection, state)
    put_trimmed(connection, TrimmedWrites(0, link, WordTally()))
    return state


def put_state(connection: sqlite3.Connection, state: State) -> None:
    """Writes the state of the log."""
    values = (state.log_id, state.last, state.link, state.journal_position)
    connection.execute(
        "INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?, ?)", (*values, _row_checksum(*values))
    )


def get_state(connection: sqlite3.Connection) -> State:
    """Reads the state of the log; raises ArtefactError if it is damaged."""
    return State(
        *_select_checked_row(connection, "SELECT log_id, last, link, place, checksum FROM state")
    )


def roll_back(connection: sqlite3.Connection, state: State) -> None:
    """Restores an earlier state of the log and removes later writes, without committing."""
    connection.execute("DELETE FROM writes WHERE sequence > ?", (state.last,))
    put_state(connection, state)


def put_trimmed(connection: sqlite3.Connection, trimmed: TrimmedWrites) -> None:
    """Writes the summary of trimmed writes."""
    words = trimmed.words
    values = (trimmed.last, trimmed.link, words.packed, words.passages, words.tokens)
    connection.execute(
        "INSERT OR REPLACE INTO trimmed VALUES (1, ?, ?, ?, ?, ?, ?)",
        (*values, _row_checksum(*values)),
    )


def get_trimmed(connection: sqlite3.Connection) -> TrimmedWrites:
    """Reads the summary of trimmed writes; raises ArtefactError if it is damaged."""
    last, link, *words = _select_checked_row(
        connection, "SELECT last, link, words, passages, tokens, checksum FROM trimmed"
    )
    return TrimmedWrites(last, link, WordTally(*words))


def to_row(write: LoggedWrite, link: bytes) -> tuple[Any, ...]:
    """Converts a write and its link to the values of a row of `writes`."""
    values = _DELETION if write.put is None else _put_values(write.put)
    return (write.sequence, write.id, write.version, write.removed_words, *values, link)


def select_writes(
    connection: sqlite3.Connection, after: int, up_to: int, limit: int, link: bytes
) -> list[tuple[LoggedWrite, bytes]]:
    """Reads up to `limit` writes that follow write number `after`, each with its link.

    `link` is the link of write `after`.

    Raises:
        ArtefactError: a write is damaged, or missing.

    """
    writes = []
    rows = connection.execute(_SELECT, (after, up_to, limit)).fetchall()
    for expected, row in enumerate(rows, after + 1):
        sequence, identifier, version, removed_words, *values, stored_link = row
        if sequence != expected:
            raise ArtefactError(f"write {expected} is missing from the log")
        write = LoggedWrite(
            sequence=sequence,
            id=identifier,
            version=version,
            put=None if values[0] is None else _encoded_passage(identifier, values),
            removed_words=removed_words,
        )
        try:
            link = next_link(link, write)
        except (TypeError, AttributeError, ValueError, struct.error) as error:
            # a column has a value of another type
            raise ArtefactError(f"write {sequence} is damaged: {error}") from error
        if link != stored_link:
            raise ArtefactError(f"write {sequence} is damaged")
        writes.append((write, link))
    return writes


def link_at(connection: sqlite3.Connection, sequence: int) -> bytes:
    """Reads the link of a write; raises ArtefactError if the log does not hold the write."""
    trimmed = get_trimmed(connection)
    if sequence == trimmed.last:
        return trimmed.link
    query = "SELECT link FROM writes WHERE sequence = ?"
    row = connection.execute(query, (sequence,)).fetchone()
    if sequence < trimmed.last or row is None:
        raise ArtefactError(
            f"it begins after write {trimmed.last}, but the writes after {sequence} are needed"
        )
    return bytes(row[0])


def _encoded_passage(identifier: str, values: Sequence[Any]) -> EncodedPassage:
    title, text, metadata, title_tokens, text_tokens, text_offsets, vector = values
    return EncodedPassage(
        passage=Passage(identifier, title, text, metadata),
        title_tokens=title_tokens,
        text_tokens=text_tokens,
        text_offsets=text_offsets,
        vector=vector,
    )


def _put_values(put: EncodedPassage) -> tuple[str | bytes, ...]:
    passage = put.passage
    return (
        *(passage.title, passage.text, passage.metadata),
        *(put.title_tokens, put.text_tokens, put.text_offsets, put.vector),
    )


def _select_checked_row(connection: sqlite3.Connection, query: str) -> list[Any]:
    """Reads the only row of a table; raises ArtefactError if its checksum does not match."""
    rows: list[list[Any]] = connection.execute(query).fetchall()
    if len(rows) != 1:
        raise ArtefactError("its state is missing")
    *values, checksum = rows[0]
    if _row_checksum(*values) != checksum:
        raise ArtefactError("its state is damaged")
    return values


def _row_checksum(*values: Any) -> bytes:
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()
