"""Reads the log from any thread or process while a node may be writing to it.

All data is checked as it is read, and an error names the damaged file.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from winnow.content_node.live.acknowledged import AcknowledgedWrite
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.schema import (
    State,
    TrimmedWrites,
    get_state,
    get_trimmed,
    link_at,
    select_writes,
)
from winnow.content_node.live.word_counts import WordTally
from winnow.content_node.merging.names import LIVE
from winnow.errors import ArtefactError

StartReplay = Callable[[int], Callable[[LoggedWrite], None]]
"""Called with the number of the last trimmed write before the log is replayed. Returns a function,
which is called with every later write in order.
"""
LOG = "writes.sqlite"
_CHUNK_WRITES = 256
"""Writes that are in memory at a time: about a megabyte."""
BUSY_TIMEOUT = 10.0
"""Seconds to wait for another process, which may lock the database to recover it."""
_READ_ERRORS = (ArtefactError, sqlite3.Error, ValueError, TypeError, ArithmeticError, MemoryError)
"""Errors of reading a damaged database: SQLite's messages may then not even be UTF-8."""
COPY_AGAIN = "copy the shard again, from a snapshot or a replica"
NO_ROOM_CODES = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_WRITE,
)
"""SQLite's codes of a full disk. Readers get them, too: to read a log that was not closed, SQLite
writes an index beside it.
"""


def log_path(shard: Path) -> Path:
    """Returns the path of a shard's log, which may not exist."""
    return shard / LIVE / LOG


def wal_path(log: Path) -> Path:
    return log.with_name(log.name + "-wal")


def read_writes(log: Path, after: int, up_to: int | None = None) -> Iterator[LoggedWrite]:
    """Reads the writes that follow write number `after`, up to `up_to` or to the last one.

    Raises:
        ArtefactError: a write is damaged, missing or trimmed.

    """
    with _connect_read_only(log) as connection:
        last = get_state(connection).last if up_to is None else up_to
        link, sequence = link_at(connection, after), after
        while sequence < last:
            chunk = select_writes(connection, sequence, last, _CHUNK_WRITES, link)
            if not chunk:
                raise ArtefactError(f"write {sequence + 1} is missing from the log")
            for write, link in chunk:  # noqa: B007 (the next chunk begins at the last link)
                yield write
            sequence = chunk[-1][0].sequence


def read_link(log: Path, sequence: int) -> bytes:
    """Reads the link of a write, the checksum of it and of all writes before it.

    Raises ArtefactError if the log does not hold the write.
    """
    with _connect_read_only(log) as connection:
        return link_at(connection, sequence)


def read_word_tally(log: Path, up_to: int) -> WordTally:
    """Sums up how the writes up to `up_to` change word counts; without a log, nothing changes.

    Raises:
        ArtefactError: a later write was trimmed, or the log is damaged.

    """
    if not log.exists():
        return WordTally()
    with _connect_read_only(log) as connection:
        trimmed = get_trimmed(connection)
    words = trimmed.words
    words.count_writes(read_writes(log, trimmed.last, up_to))
    return words


def read_state(log: Path) -> State | None:
    """Reads the state of a log while a node may be writing to it; None if there is no log.

    Raises:
        ArtefactError: the log is damaged, or cannot be read.

    """
    if not log.exists():
        return None
    with _readable_log(log) as readable, _connect_read_only(readable, named=log) as connection:
        return get_state(connection)


def check_log(
    log: Path,
    acknowledged: AcknowledgedWrite | None,
    start_replay: StartReplay,
    copy: Path | None = None,
) -> tuple[State, TrimmedWrites]:
    """Reads a whole log, and checks it against the last acknowledged write.

    If a `copy` is given, it is read instead of the log. Otherwise no process may write to the log
    meanwhile. The directory of a refused log is not changed, so that it can be examined.

    Raises:
        ArtefactError: the log is damaged, or its end is missing.

    """
    with contextlib.nullcontext(copy) if copy else _readable_log(log) as readable:
        with _connect_read_only(readable, named=log) as connection:
            _check_pages(connection)
            state, trimmed = get_state(connection), get_trimmed(connection)
        acknowledged = acknowledged or AcknowledgedWrite(trimmed.last, trimmed.link)
        if state.last < acknowledged.sequence:
            raise ArtefactError(
                f"{wal_path(log)} is damaged or cut short: the log ends at write {state.last}, but "
                f"write {acknowledged.sequence} was acknowledged: {COPY_AGAIN}"
            )
        replay = start_replay(trimmed.last)
        for write in _checked_writes(readable, log, state, trimmed, acknowledged):
            replay(write)
    return state, trimmed


def _checked_writes(
    readable: Path, log: Path, state: State, trimmed: TrimmedWrites, acknowledged: AcknowledgedWrite
) -> Iterator[LoggedWrite]:
    """Yields the writes of `readable`, a log or its copy; errors name `log`."""
    links, sequence = {trimmed.last: trimmed.link}, trimmed.last
    with _connect_read_only(readable, named=log) as connection:
        while chunk := select_writes(
            connection, sequence, state.last, _CHUNK_WRITES, links[sequence]
        ):
            links = {write.sequence: link for write, link in chunk}
            sequence = chunk[-1][0].sequence
            if links.get(acknowledged.sequence, acknowledged.link) != acknowledged.link:
                raise ArtefactError(
                    f"write {acknowledged.sequence} differs from the acknowledged one"
                )
            yield from (write for write, _ in chunk)
        if sequence != state.last or links[sequence] != state.link:
            raise ArtefactError(f"its writes end at {sequence}, but its state says {state.last}")
        (greatest,) = connection.execute("SELECT max(sequence) FROM writes").fetchone()
        if greatest is not None and greatest > state.last:
            raise ArtefactError(f"its writes end at {greatest}, but its state says {state.last}")


def _check_pages(connection: sqlite3.Connection) -> None:
    """Raises ArtefactError for damaged pages. Damaged free pages count: later writes use them."""
    (fault,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if fault != "ok":
        raise ArtefactError(str(fault))
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal":
        raise ArtefactError(f"its journal mode is {mode}, not wal")


@contextlib.contextmanager
def _connect_read_only(log: Path, named: Path | None = None) -> Iterator[sqlite3.Connection]:
    """Opens a connection that cannot write. Errors name the log, or `named` instead."""
    uri = f"{log.resolve().as_uri()}?mode=ro"
    with (
        _log_errors(named or log),
        contextlib.closing(
            sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT, check_same_thread=False)
        ) as connection,
    ):
        connection.execute("PRAGMA mmap_size = 0").close()
        yield connection


@contextlib.contextmanager
def _log_errors(log: Path) -> Iterator[None]:
    """Converts errors of reading a log to ArtefactErrors that name it."""
    try:
        yield
    except _READ_ERRORS as error:
        if getattr(error, "sqlite_errorcode", 0) in NO_ROOM_CODES:
            raise ArtefactError(
                f"{log} cannot be read, since nothing can be written beside it ({error}): make "
                "room on the disk and start again; no write is lost"
            ) from error
        raise ArtefactError(f"{log} is damaged or cannot be read: {error}: {COPY_AGAIN}") from error


@contextlib.contextmanager
def _readable_log(log: Path) -> Iterator[Path]:
    """Yields the path of the log, or of a temporary copy if the log's directory is read-only.

    SQLite has to write beside a log that was not closed.
    """
    if os.access(log.parent, os.W_OK, effective_ids=True):
        yield log
        return
    with tempfile.TemporaryDirectory(prefix="winnow-log-") as directory:
        for path in (log, wal_path(log)):
            if path.exists():
                shutil.copyfile(path, Path(directory) / path.name)
        yield Path(directory) / log.name
