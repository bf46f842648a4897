"""A copy of a shard's log, which others may be writing to: all of it up to one of its writes."""

import contextlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from content_node.live import acknowledged
from content_node.live.acknowledged import ACKNOWLEDGED, Acknowledged, AcknowledgedFile
from content_node.live.lock import LOCK
from content_node.live.reading import BUSY, check, log_path
from content_node.snapshots.contents import Item, item_of
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.opened import OpenFile

_PRIMARY = 0xFF
"""The bits of an extended code that are the code."""


@dataclass(frozen=True, slots=True)
class LogCopy:
    """A log that nobody writes to."""

    items: tuple[Item, ...]
    last: int
    """The last write."""
    trimmed: int
    """The last write that is not in it any more: a base has to hold it."""


def copy_log(shard: Path, room: Path) -> LogCopy | None:
    """Copies the log of a shard into `room`, an empty directory; None if there is no log.

    Every write that was acknowledged before is in it. Nobody who writes has to wait.

    Raises:
        ArtefactError: the log is damaged.
        UnavailableError: it cannot be read from here, or there is no room for the copy.

    """
    source = log_path(shard)
    told = acknowledged.read(source.with_name(ACKNOWLEDGED))
    if not source.exists():
        return None
    copy = room / source.name
    _backup(source, copy)
    state, trimmed = check(copy, told, lambda _: lambda _: None)
    AcknowledgedFile(room / ACKNOWLEDGED, Acknowledged(state.last, state.link)).close()
    (room / LOCK).touch()  # or a node that feeds what is restored would find none to hold
    items = (item_of(OpenFile(room / name)) for name in (copy.name, ACKNOWLEDGED, LOCK))
    return LogCopy(tuple(items), state.last, trimmed.last)


def _backup(source: Path, copy: Path) -> None:
    """All pages at once, which are then those of one moment."""
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
            f"cannot copy {source} to {copy.parent}: {error}: run this as a user who may write to "
            "the shard, and say by TMPDIR where there is room"
        ) from error
