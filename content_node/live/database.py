"""The log's SQLite database: making it, connections that write to it, and checkpoints."""

import contextlib
import errno
import sqlite3
from pathlib import Path

import structlog

from winnow.content_node.live.reading import BUSY, wal_path
from winnow.content_node.live.schema import State, Trimmed, begin, get_trimmed
from winnow.errors import NotWritableError
from winnow.files.durable import sync_directory

_log = structlog.get_logger("content_node")
_CHECKPOINT = 4_000
"""Pages after which SQLite moves what was written into the database: 16 MB."""
_WAL_LIMIT = 4 * 2**20
"""Bytes that an emptied write-ahead log keeps on the disk; SQLite alone would never shrink it."""
_NO_WAIT = 0.0
"""Seconds: a checkpoint that waited for a reader would hold up every write."""


def connect(path: Path, busy: float = BUSY) -> sqlite3.Connection:
    """A connection for one thread at a time, whose transactions are durable when committed.

    It waits up to `busy` seconds for a lock that another connection holds. A missing file is not
    made: SQLite would remove a write-ahead log that lies beside it.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, busy, isolation_level=None, check_same_thread=False, uri=True)
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        f"wal_autocheckpoint = {_CHECKPOINT}",
        f"journal_size_limit = {_WAL_LIMIT}",
        # deleted writes are in the base; zeroing them would write them once more
        "secure_delete = OFF",
        "mmap_size = 0",
    ):
        connection.execute(f"PRAGMA {pragma}").close()
    return connection


def make_log(path: Path, log_id: str) -> tuple[State, Trimmed]:
    """Makes an empty log under another name and renames it: it is there whole or not at all.

    Raises:
        NotWritableError: there is a log.
        OSError: it cannot be made; `sqlite3.Error` as well.

    """
    if path.exists():
        raise NotWritableError(f"another node made {path}: start this one again")
    partial = path.with_name(f"{path.name}.partial")
    for left in (partial, wal_path(partial), partial.with_name(f"{partial.name}-shm")):
        left.unlink(missing_ok=True)
    partial.touch()
    with contextlib.closing(connect(partial)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        state = begin(connection, log_id)
        trimmed = get_trimmed(connection)
        connection.execute("COMMIT")
    if wal_path(partial).exists():
        raise OSError(errno.EIO, f"{partial} could not be closed")
    partial.rename(path)
    sync_directory(path.parent)
    _log.info("log begun", path=str(path), log=log_id)
    return state, trimmed


def move_pages(log: Path) -> None:
    """Moves pages into the database while others write; the write-ahead log keeps its size.

    Raises sqlite3.Error if the pages cannot be moved, for example on a full disk.
    """
    _checkpoint(log, "PASSIVE")


def cut_wal(log: Path) -> bool:
    """Moves all pages into the database and cuts the write-ahead log to no bytes.

    Returns False, and leaves the file, while another connection reads from it. The caller keeps
    writers away: after `move_pages` this takes a moment. Raises as `move_pages`.
    """
    return _checkpoint(log, "TRUNCATE")


def _checkpoint(log: Path, mode: str) -> bool:
    """Whether no other connection was in the way."""
    if not wal_path(log).exists() or not wal_path(log).stat().st_size:
        return True
    with contextlib.closing(connect(log, _NO_WAIT)) as connection:
        ((busy, _, _),) = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
    return not busy
