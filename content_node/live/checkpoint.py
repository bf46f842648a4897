"""Emptying SQLite's write-ahead log: what it holds moves into the log's database."""

import contextlib
from pathlib import Path

from winnow.content_node.live.making import connect
from winnow.content_node.live.reading import wal_path

_NO_WAIT = 0.0
"""Seconds: a checkpoint that waited for a reader would hold up every write."""


def move_pages(log: Path) -> None:
    """Moves pages into the database while others write; the write-ahead log keeps its size.

    Raises sqlite3.Error if the pages cannot be moved, on a full disk for example.
    """
    _checkpoint(log, "PASSIVE")


def cut_wal(log: Path) -> bool:
    """Moves all pages into the database and cuts the write-ahead log to no bytes.

    Returns False, and leaves the file, while somebody reads from it. The caller keeps writers away:
    after `move_pages` this takes a moment. Raises as `move_pages`.
    """
    return _checkpoint(log, "TRUNCATE")


def _checkpoint(log: Path, mode: str) -> bool:
    """Whether nothing was in the way."""
    if not wal_path(log).exists() or not wal_path(log).stat().st_size:
        return True
    with contextlib.closing(connect(log, _NO_WAIT)) as connection:
        ((busy, _, _),) = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
    return not busy
