"""Copies a log consistently while a node may be writing to it, and checks the copy."""

import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path

from winnow.content_node.live.acknowledged import ACKNOWLEDGED_FILE, read_acknowledged
from winnow.content_node.live.failures import DAMAGED_CODES, primary_code
from winnow.content_node.live.opening import check_no_log_files
from winnow.content_node.live.reading import (
    BUSY_TIMEOUT,
    NO_ROOM_CODES,
    StartReplay,
    check_log,
    log_path,
)
from winnow.content_node.live.schema import State, TrimmedWrites
from winnow.errors import ArtefactError, UnavailableError


def check_live_log(shard: Path, start_replay: StartReplay) -> tuple[State, TrimmedWrites] | None:
    """Checks the whole log of a shard while a node may be writing to it; None if there is no log.

    The function that `start_replay` returns gets every write acknowledged before this call. The
    check takes no lock and delays no write.

    Raises:
        ArtefactError: the log is damaged, or its end is missing.
        UnavailableError: the log cannot be read by this user, or there is no room for a copy.

    """
    log = log_path(shard)
    acknowledged = read_acknowledged(log.with_name(ACKNOWLEDGED_FILE))
    if not log.exists():
        check_no_log_files(log, acknowledged)
        return None
    if not os.access(log.parent, os.W_OK, effective_ids=True):
        return check_log(log, acknowledged, start_replay)  # copies the log's files itself
    with tempfile.TemporaryDirectory(prefix="winnow-log-") as directory:
        copy = Path(directory) / log.name
        copy_database(log, copy)
        return check_log(log, acknowledged, start_replay, copy)


def copy_database(source: Path, copy: Path) -> None:
    """Copies all pages of a log in one step, so that the copy is consistent.

    Raises:
        ArtefactError: the log is damaged.
        UnavailableError: the log cannot be read by this user, or there is no room for the copy.

    """
    uri = f"{source.resolve().as_uri()}?mode=ro"
    try:
        with (
            contextlib.closing(sqlite3.connect(uri, BUSY_TIMEOUT, uri=True)) as reader,
            contextlib.closing(sqlite3.connect(copy)) as writer,
        ):
            reader.backup(writer)
    except sqlite3.Error as error:
        if primary_code(error) in DAMAGED_CODES:
            raise ArtefactError(f"{source} is damaged: {error}") from error
        raise UnavailableError(
            f"cannot copy {source} to {copy.parent}: {error}: {_copy_advice(error, source, copy)}"
        ) from error


def _copy_advice(error: sqlite3.Error, source: Path, copy: Path) -> str:
    """Advises what to do about a log that could not be copied; names the full disk."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_FULL:
        return f"make room on the disk of {copy.parent}, or set TMPDIR to another directory"
    if code in NO_ROOM_CODES:
        return f"make room on the disk of {source.parent}; no write is lost"
    return f"run this as a user who may write to {source.parent}"
