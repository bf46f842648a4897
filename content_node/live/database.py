"""Creates the log's SQLite database, opens connections that write to it, and checkpoints it."""

import contextlib
import errno
import sqlite3
from dataclasses import replace
from pathlib import Path

import structlog

from winnow.content_node.live.reading import BUSY_TIMEOUT, wal_path
from winnow.content_node.live.schema import (
    State,
    TrimmedWrites,
    create_tables,
    get_trimmed,
    put_state,
    put_trimmed,
)
from winnow.errors import NotWritableError
from winnow.files.durable import sync_directory

_log = structlog.get_logger("content_node")
_CHECKPOINT_PAGES = 4_000
"""Pages in the write-ahead log after which SQLite moves them into the database: 16 MB."""
_WAL_BYTES = 4 * 2**20
"""Bytes that an emptied write-ahead log keeps on the disk; SQLite alone would never shrink it."""
_NO_WAIT = 0.0
"""Seconds that a checkpoint waits for readers: waiting would delay every write."""


def connect(
    path: Path, timeout: float = BUSY_TIMEOUT, *, overwrites: bool = False
) -> sqlite3.Connection:
    """Opens a connection whose committed transactions are durable, for one thread at a time.

    It waits up to `timeout` seconds for a lock that another connection holds. A missing file is not
    created: SQLite would remove a write-ahead log beside it. `overwrites`: whether deleted writes
    are overwritten with zeros.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(
        uri, timeout, isolation_level=None, check_same_thread=False, uri=True
    )
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        f"journal_size_limit = {_WAL_BYTES}",
        # overwriting deleted writes writes their pages again
        f"secure_delete = {'ON' if overwrites else 'OFF'}",
        "mmap_size = 0",
    ):
        connection.execute(f"PRAGMA {pragma}").close()
    return connection


def create_log(
    path: Path, log_id: str, trimmed: TrimmedWrites | None = None, journal_position: str = ""
) -> tuple[State, TrimmedWrites]:
    """Creates an empty log under another name and renames it, so that no partial log ever appears.

    Its first write comes after the last one of `trimmed`. Without `trimmed`, it is write 1. If the
    log follows a journal, it follows it from `journal_position`.

    Raises:
        NotWritableError: there is a log already.
        OSError: the log cannot be created.
        sqlite3.Error: the log cannot be created.

    """
    if path.exists():
        raise NotWritableError(f"another node created {path}: restart this node")
    partial = path.with_name(f"{path.name}.partial")
    for leftover in (partial, wal_path(partial), partial.with_name(f"{partial.name}-shm")):
        leftover.unlink(missing_ok=True)
    partial.touch()
    with contextlib.closing(connect(partial)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        state = create_tables(connection, log_id)
        if trimmed is not None:
            state = replace(state, last=trimmed.last, link=trimmed.link)
            put_trimmed(connection, trimmed)
        state = replace(state, journal_position=journal_position)
        put_state(connection, state)
        trimmed = get_trimmed(connection)
        connection.execute("COMMIT")
    if wal_path(partial).exists():
        raise OSError(errno.EIO, f"cannot close {partial}: its write-ahead log remains")
    partial.rename(path)
    sync_directory(path.parent)
    _log.info("log created", path=str(path), log=log_id)
    return state, trimmed


def checkpoint(log: Path) -> None:
    """Moves pages of the write-ahead log into the database while others may write to the log.

    The write-ahead log keeps its size. Raises sqlite3.Error if pages cannot be moved, for example
    on a full disk.
    """
    _run_checkpoint(log, "PASSIVE")


def truncate_wal(log: Path) -> bool:
    """Moves all pages into the database and truncates the write-ahead log to 0 bytes.

    Returns False, and does not truncate the file, while another connection reads from it. The
    caller must keep writers away, but only briefly if `checkpoint` has just run. Raises as
    `checkpoint`.
    """
    return _run_checkpoint(log, "TRUNCATE")


def _run_checkpoint(log: Path, mode: str) -> bool:
    """Runs a checkpoint; returns False if another connection prevented it."""
    if not wal_path(log).exists() or not wal_path(log).stat().st_size:
        return True
    with contextlib.closing(connect(log, _NO_WAIT)) as connection:
        ((busy, _, _),) = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
    return not busy
