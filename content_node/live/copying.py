"""A copy of a log that a node may be writing to, as it was at one moment."""

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
    """Checks all of a shard's log, which a node may write to meanwhile; None if there is no log.

    The function that `begin` returns gets every write that was acknowledged before the call. Takes
    no lock, and no write has to wait.

    Raises:
        ArtefactError: the log is damaged, or its end is missing.
        UnavailableError: the log cannot be read by this user, or there is no room for a copy.

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
    """Copies all pages in one step, so that they are of one moment.

    Raises:
        ArtefactError: the log is damaged.
        UnavailableError: the log cannot be read by this user, or there is no room for the copy.

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
    """The advice for a log that could not be copied; names the full disk."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_FULL:
        return f"make room on the disk of {copy.parent}, or name another directory by TMPDIR"
    if code in NO_ROOM:
        return f"make room on the disk of {source.parent}; no write is lost"
    return f"run this as a user who may write to {source.parent}"
