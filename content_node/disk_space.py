"""Checks that a directory has room for shards and can be used. Blocks: use a thread."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.storage.pull import MB

_ROOM_FACTOR = 1.1
"""Required space as a multiple of the shard's size: its log grows while it is copied."""


@contextmanager
def usable_for_shards(data: Path) -> Iterator[None]:
    """Converts an OSError to an ArtefactError: the directory `data` cannot be used for shards."""
    try:
        yield
    except OSError as error:
        raise ArtefactError(f"cannot use {data} for shards: {error.strerror}") from error


def check_disk_space(directory: Path, size: int, alternative: str) -> None:
    """Raises ArtefactError if the disk has no room for a directory of `size` bytes.

    `alternative` is part of the message: what to do instead of making room.
    """
    with usable_for_shards(directory.parent):
        directory.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(directory.parent).free
    if free < size * _ROOM_FACTOR:
        room = f"{free / MB:,.0f} MB of free space, but {directory.name} has {size / MB:,.0f} MB"
        advice = f"make room, or {alternative}"
        full = ArtefactError(f"{directory.parent} has {room}: {advice}")
        raise full.with_public(f"the disk has {room}: {advice}")


def check_room(directory: Path, size: int) -> None:
    """Raises OSError if the disk of `directory` has no room for `size` bytes.

    For files that a shard can do without. On a full disk, writes to the shard would be refused.
    """
    free = shutil.disk_usage(directory).free
    if free < size * _ROOM_FACTOR:
        room = f"{free / MB:,.0f} MB of free space for {size / MB:,.0f} MB"
        raise OSError(errno.ENOSPC, room)
