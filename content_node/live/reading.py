"""Reading the log from any thread, and from other processes, while it is written to.

Everything that is read is checked, and an error names the damaged file.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from winnow.content_node.live.acknowledged import Acknowledged
from winnow.content_node.live.entry import Logged
from winnow.content_node.live.schema import (
    State,
    Trimmed,
    get_state,
    get_trimmed,
    link_at,
    select,
)
from winnow.errors import ArtefactError

Begin = Callable[[int], Callable[[Logged], None]]
"""Takes the number of the last trimmed write; returns a function that takes every later write."""
LIVE = "live"
"""The directory of a shard that holds its writes."""
LOG = "writes.sqlite"
_CHUNK = 256
"""Writes in memory at a time: about a megabyte."""
BUSY = 10.0
"""Seconds that another process may lock the database to recover it."""
_DAMAGE = (ArtefactError, sqlite3.Error, ValueError, TypeError, ArithmeticError, MemoryError)
"""Errors of reading a damaged database: SQLite's messages may then not even be UTF-8."""
AGAIN = "copy the shard again, from a snapshot or a replica"
NO_ROOM = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_WRITE,
)
"""Codes of a full disk: reading a log that was not closed writes an index beside it."""


def log_path(shard: Path) -> Path:
    """The path of the log of a shard, if it has one."""
    return shard / LIVE / LOG


def wal_path(log: Path) -> Path:
    return log.with_name(log.name + "-wal")


def entries(log: Path, after: int, up_to: int | None = None) -> Iterator[Logged]:
    """The writes after `after` in order, up to `up_to` or to the last one.

    Raises:
        ArtefactError: one of them is damaged, or was trimmed.

    """
    with _reading(log) as connection:
        last = get_state(connection).last if up_to is None else up_to
        link, sequence = link_at(connection, after), after
        while sequence < last:
            found = select(connection, sequence, last, _CHUNK, link)
            if not found:
                raise ArtefactError(f"write {sequence + 1} is missing from the log")
            for write, link in found:  # noqa: B007 (the next ones begin at the last link)
                yield write
            sequence = found[-1][0].sequence


def state_of(log: Path) -> State | None:
    """The position of a log that a node may be writing to; None if there is no log.

    Raises:
        ArtefactError: it is damaged, or cannot be read.

    """
    if not log.exists():
        return None
    with _readable(log) as readable, _reading(readable, named=log) as connection:
        return get_state(connection)


def check(
    log: Path, acknowledged: Acknowledged | None, begin: Begin, copy: Path | None = None
) -> tuple[State, Trimmed]:
    """Reads all of a log, and checks it against the last acknowledged write.

    No process may write to it meanwhile, or a `copy` of it is read instead. The directory of a
    refused log is not changed, so that it can be examined.

    Raises:
        ArtefactError: the log is damaged, or its end is missing.

    """
    with contextlib.nullcontext(copy) if copy else _readable(log) as readable:
        with _reading(readable, named=log) as connection:
            _check_pages(connection)
            state, trimmed = get_state(connection), get_trimmed(connection)
        told = acknowledged or Acknowledged(trimmed.last, trimmed.link)
        if state.last < told.sequence:
            raise ArtefactError(
                f"{wal_path(log)} is damaged or cut short: the log ends at write {state.last}, and "
                f"write {told.sequence} was acknowledged: {AGAIN}"
            )
        each = begin(trimmed.last)
        for write in _checked_writes(readable, log, state, trimmed, told):
            each(write)
    return state, trimmed


def _checked_writes(
    readable: Path, log: Path, state: State, trimmed: Trimmed, told: Acknowledged
) -> Iterator[Logged]:
    links, sequence = {trimmed.last: trimmed.link}, trimmed.last
    with _reading(readable, named=log) as connection:
        while found := select(connection, sequence, state.last, _CHUNK, links[sequence]):
            links = {write.sequence: link for write, link in found}
            sequence = found[-1][0].sequence
            if links.get(told.sequence, told.link) != told.link:
                raise ArtefactError(f"write {told.sequence} is not the one that was acknowledged")
            yield from (write for write, _ in found)
        if sequence != state.last or links[sequence] != state.link:
            raise ArtefactError(f"it ends at write {sequence}, and its state at {state.last}")
        (beyond,) = connection.execute("SELECT max(sequence) FROM writes").fetchone()
        if beyond is not None and beyond > state.last:
            raise ArtefactError(f"it has a write {beyond}, and its state ends at {state.last}")


def _check_pages(connection: sqlite3.Connection) -> None:
    """Damage that no write shows yet would spoil the next ones."""
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise ArtefactError(str(found))
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal":
        raise ArtefactError(f"its journal mode is {mode}")


@contextlib.contextmanager
def _reading(log: Path, named: Path | None = None) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write. Its errors name the log, or `named` instead."""
    with _named(named or log), contextlib.closing(_open(log)) as connection:
        yield connection


def _open(log: Path) -> sqlite3.Connection:
    uri = f"{log.resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY, check_same_thread=False)
    connection.execute("PRAGMA mmap_size = 0").close()
    return connection


@contextlib.contextmanager
def _named(log: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        if getattr(error, "sqlite_errorcode", 0) in NO_ROOM:
            raise ArtefactError(
                f"{log} cannot be read, since nothing can be written beside it ({error}): make "
                "room on the disk and start again; no write is lost"
            ) from error
        raise ArtefactError(f"{log} is damaged or cannot be read: {error}: {AGAIN}") from error


@contextlib.contextmanager
def _readable(log: Path) -> Iterator[Path]:
    """The log, or a copy if the directory is read-only: SQLite writes beside a log that was not
    closed.
    """
    if os.access(log.parent, os.W_OK, effective_ids=True):
        yield log
        return
    with tempfile.TemporaryDirectory(prefix="winnow-log-") as copies:
        for path in (log, wal_path(log)):
            if path.exists():
                shutil.copyfile(path, Path(copies) / path.name)
        yield Path(copies) / log.name
