"""Checks the free disk space before a shard is copied or split. Blocks: use a thread."""

import shutil
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.storage.pull import MB

_ROOM_FACTOR = 1.1
"""Required space as a multiple of the shard's size: its log grows while it is copied."""


def check_disk_space(directory: Path, size: int, alternative: str) -> None:
    """Raises ArtefactError if the disk has no room for a directory of `size` bytes.

    `alternative` is part of the message: what to do instead of making room.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(directory.parent).free
    except OSError as error:
        raise ArtefactError(
            f"cannot use {directory.parent} for shards: {error.strerror}"
        ) from error
    if free < size * _ROOM_FACTOR:
        room = f"{free / MB:,.0f} MB of free space, but {directory.name} has {size / MB:,.0f} MB"
        advice = f"make room, or {alternative}"
        full = ArtefactError(f"{directory.parent} has {room}: {advice}")
        raise full.with_public(f"the disk has {room}: {advice}")
