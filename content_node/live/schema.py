"""The tables of the log's database, and the conversion of their rows to writes.

Every byte that matters is under a checksum. The checksum of a write covers all earlier writes.
"""

import hashlib
import sqlite3
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from winnow.content_node.live.entry import Logged, first_link, link
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
_NOTHING = (None,) * 7


@dataclass(frozen=True, slots=True)
class State:
    """The position of a log."""

    log_id: str
    last: int
    """The number of the last write; 0 if there was none."""
    link: bytes
    """The checksum of all writes up to the last one."""
    place: str = ""
    """The place in the journal that the log follows; empty if it follows none."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The remains of the writes that were trimmed."""

    last: int
    link: bytes
    words: WordTally


def begin(connection: sqlite3.Connection, log_id: str) -> State:
    """Makes the tables of a new log, without committing."""
    start = first_link(log_id, 0)
    state = State(log_id, 0, start)
    for statement in SCHEMA.split(";\n"):
        connection.execute(statement)
    put_state(connection, state)
    put_trimmed(connection, Trimmed(0, start, WordTally()))
    return state


def put_state(connection: sqlite3.Connection, state: State) -> None:
    """Writes the position of the log."""
    values = (state.log_id, state.last, state.link, state.place)
    connection.execute(
        "INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?, ?)", (*values, _checksum(*values))
    )


def get_state(connection: sqlite3.Connection) -> State:
    """The position of the log; raises ArtefactError if it is damaged."""
    return State(*_checked(connection, "SELECT log_id, last, link, place, checksum FROM state"))


def take_back(connection: sqlite3.Connection, state: State) -> None:
    """Returns to an earlier position of the log."""
    connection.execute("DELETE FROM writes WHERE sequence > ?", (state.last,))
    put_state(connection, state)


def put_trimmed(connection: sqlite3.Connection, trimmed: Trimmed) -> None:
    """Writes the remains of trimmed writes."""
    words = trimmed.words
    values = (trimmed.last, trimmed.link, words.packed, words.passages, words.tokens)
    connection.execute(
        "INSERT OR REPLACE INTO trimmed VALUES (1, ?, ?, ?, ?, ?, ?)", (*values, _checksum(*values))
    )


def get_trimmed(connection: sqlite3.Connection) -> Trimmed:
    """The remains of trimmed writes; raises ArtefactError if they are damaged."""
    last, link_there, *words = _checked(
        connection, "SELECT last, link, words, passages, tokens, checksum FROM trimmed"
    )
    return Trimmed(last, link_there, WordTally(*words))


def row_of(write: Logged, its_link: bytes) -> tuple[Any, ...]:
    put = write.put
    values = _NOTHING if put is None else _values(put)
    return (write.sequence, write.id, write.version, write.removed, *values, its_link)


def select(
    connection: sqlite3.Connection, after: int, up_to: int, most: int, before: bytes
) -> list[tuple[Logged, bytes]]:
    """The writes after `after`, each with its link; `before` is the link of `after`.

    Raises:
        ArtefactError: one is damaged, or missing.

    """
    found = []
    rows = connection.execute(_SELECT, (after, up_to, most)).fetchall()
    for expected, row in enumerate(rows, after + 1):
        sequence, identifier, version, removed, *values, its_link = row
        if sequence != expected:
            raise ArtefactError(f"write {expected} is missing from the log")
        write = Logged(
            sequence=sequence,
            id=identifier,
            version=version,
            put=None if values[0] is None else _put(identifier, values),
            removed=removed,
        )
        before = _link(before, write)
        if before != its_link:
            raise ArtefactError(f"write {sequence} is damaged")
        found.append((write, before))
    return found


def link_at(connection: sqlite3.Connection, sequence: int) -> bytes:
    """The link of a write; raises ArtefactError if it is not there."""
    trimmed = get_trimmed(connection)
    if sequence == trimmed.last:
        return trimmed.link
    query = "SELECT link FROM writes WHERE sequence = ?"
    found = connection.execute(query, (sequence,)).fetchone()
    if sequence < trimmed.last or found is None:
        raise ArtefactError(
            f"it begins after write {trimmed.last}, and the writes after {sequence} are needed"
        )
    return bytes(found[0])


def _link(before: bytes, write: Logged) -> bytes:
    try:
        return link(before, write)
    except (
        TypeError,
        AttributeError,
        ValueError,
        struct.error,
    ) as error:  # a column of another type
        raise ArtefactError(f"write {write.sequence} is damaged: {error}") from error


def _put(identifier: str, values: Sequence[Any]) -> EncodedPassage:
    title, text, metadata, title_tokens, text_tokens, text_offsets, vector = values
    return EncodedPassage(
        passage=Passage(identifier, title, text, metadata),
        title_tokens=title_tokens,
        text_tokens=text_tokens,
        text_offsets=text_offsets,
        vector=vector,
    )


def _values(put: EncodedPassage) -> tuple[str | bytes, ...]:
    passage = put.passage
    return (
        *(passage.title, passage.text, passage.metadata),
        *(put.title_tokens, put.text_tokens, put.text_offsets, put.vector),
    )


def _checked(connection: sqlite3.Connection, query: str) -> list[Any]:
    """The values of the one row; raises ArtefactError if its checksum, the last value, is wrong."""
    rows: list[list[Any]] = connection.execute(query).fetchall()
    if len(rows) != 1:
        raise ArtefactError("its state is missing")
    *values, checksum = rows[0]
    if _checksum(*values) != checksum:
        raise ArtefactError("its state is damaged")
    return values


def _checksum(*values: Any) -> bytes:
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()
