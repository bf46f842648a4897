"""Whether a disk has room for a new copy or half of a shard. Blocks: use a thread."""

import shutil
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.storage.pull import MB

_ROOM_FACTOR = 1.1
"""Disk space that a shard needs, as a multiple of its size: the log grows meanwhile."""


def check_disk_space(directory: Path, size: int, otherwise: str) -> None:
    """Raises ArtefactError if the disk has no room for a directory of `size` bytes.

    `otherwise` says what else can be done than making room.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(directory.parent).free
    except OSError as error:
        raise ArtefactError(
            f"cannot use {directory.parent} for shards: {error.strerror}"
        ) from error
    if free < size * _ROOM_FACTOR:
        room = f"{free / MB:,.0f} MB of room, and {directory.name} takes {size / MB:,.0f}"
        advice = f"make room, or {otherwise}"
        full = ArtefactError(f"{directory.parent} has {room}: {advice}")
        raise full.with_public(f"the disk has {room}: {advice}")
