"""A copy of a log that a node may be writing to: all of it, as it was at one moment."""

import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path

from winnow.content_node.live import acknowledged
from winnow.content_node.live.acknowledged import ACKNOWLEDGED
from winnow.content_node.live.opening import expect_nothing
from winnow.content_node.live.reading import BUSY, NO_ROOM, Begin, check, log_path
from winnow.content_node.live.schema import State, Trimmed
from winnow.errors import ArtefactError, UnavailableError

_PRIMARY = 0xFF
"""The bits of an extended code that are the code."""


def check_in_use(shard: Path, begin: Begin) -> tuple[State, Trimmed] | None:
    """Checks all of a shard's log, which may be written to meanwhile; None if there is none.

    What `begin` returns is told of every write that was acknowledged before. Takes no lock, and
    nobody who writes has to wait.

    Raises:
        ArtefactError: the log is damaged, or its end is missing.
        UnavailableError: it cannot be read from here, or there is no room for a copy.

    """
    log = log_path(shard)
    told = acknowledged.read(log.with_name(ACKNOWLEDGED))
    if not log.exists():
        expect_nothing(log, told)
        return None
    if not os.access(log.parent, os.W_OK, effective_ids=True):
        return check(log, told, begin)  # which copies its files
    with tempfile.TemporaryDirectory(prefix="winnow-log-") as room:
        copy = Path(room) / log.name
        back_up(log, copy)
        return check(log, told, begin, copy)


def back_up(source: Path, copy: Path) -> None:
    """All pages at once, which are then those of one moment.

    Raises:
        ArtefactError: the log is damaged.
        UnavailableError: it cannot be read from here, or there is no room for the copy.

    """
    uri = f"{source.resolve().as_uri()}?mode=ro"
    try:
        with (
            contextlib.closing(sqlite3.connect(uri, BUSY, uri=True)) as reading,
            contextlib.closing(sqlite3.connect(copy)) as writing,
        ):
            reading.backup(writing)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise ArtefactError(f"{source} is damaged: {error}") from error
        raise UnavailableError(
            f"cannot copy {source} to {copy.parent}: {error}: {_advice(error, source, copy)}"
        ) from error


def _advice(error: sqlite3.Error, source: Path, copy: Path) -> str:
    """What to do about a log that could not be copied: names the disk that is full."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_FULL:
        return f"make room on the disk of {copy.parent}, or name another directory by TMPDIR"
    if code in NO_ROOM:
        return f"make room on the disk of {source.parent}; nothing that is there is lost"
    return f"run this as a user who may write to {source.parent}"
