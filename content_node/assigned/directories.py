"""Manages the directories of shards below --data of a node. Blocks: use a thread."""

import shutil
from collections.abc import Collection
from pathlib import Path

import structlog

from winnow.content_node.disk_space import usable_for_shards
from winnow.content_node.live.locks import DirectoryLock
from winnow.content_node.repeated_warnings import RepeatedWarnings
from winnow.domain.shard import shard_number_of
from winnow.errors import ArtefactError, WinnowError
from winnow.files.durable import sync_directory
from winnow.storage.partial import PARTIAL, remove_partial

_log = structlog.get_logger("content_node")
_LOCK = "node.lock"
_REMOVED = ".removed"
"""Suffix of a directory that is being deleted."""


def shards_in(data: Path) -> list[Path]:
    """Lists the directories of shards, sorted; raises ArtefactError if that fails."""
    with usable_for_shards(data):
        return sorted(each for each in data.iterdir() if shard_number_of(each.name) is not None)


def lock_data(data: Path) -> DirectoryLock:
    """Locks a data directory until the process ends.

    Raises ArtefactError if another node has locked it, or the lock cannot be written.
    """
    try:
        with usable_for_shards(data):
            return DirectoryLock(data / _LOCK)
    except ArtefactError as error:
        raise ArtefactError(
            f"--data {data} is used by another node: give each node another directory"
        ) from error


def prepare_data(data: Path) -> None:
    """Creates a data directory; finishes the deletions that a killed node began."""
    with usable_for_shards(data):
        data.mkdir(parents=True, exist_ok=True)
    for each in data.glob(f"*{_REMOVED}"):
        shutil.rmtree(each, ignore_errors=True)


def delete_shard(directory: Path, warnings: RepeatedWarnings | None = None) -> bool:
    """Deletes the directory of a shard. After a kill it is either complete or renamed.

    Returns False, and logs the reason, if it cannot be renamed. Attempts that are repeated share
    `warnings`.
    """
    removed = directory.with_name(directory.name + _REMOVED)
    shutil.rmtree(removed, ignore_errors=True)  # a directory cannot replace one with files
    try:
        directory.rename(removed)
        sync_directory(directory.parent)
    except OSError as error:
        (warnings or RepeatedWarnings()).warn(
            "closed shard not deleted", directory, reason=error.strerror
        )
        return False
    shutil.rmtree(removed, ignore_errors=True)
    return True


def delete_partial_copies(data: Path, wanted: Collection[int]) -> None:
    """Deletes the files of interrupted copies, except for shards in `wanted`."""
    for each in data.glob(f"*{PARTIAL}"):
        target = each.with_name(each.name.removesuffix(PARTIAL))
        number = shard_number_of(target.name)
        if number is None or number in wanted:
            continue
        try:
            remove_partial(target)
        except (OSError, WinnowError) as error:
            _log.warning("partial copy not deleted", directory=str(each), reason=str(error))
