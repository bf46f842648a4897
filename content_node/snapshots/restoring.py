"""Restoring a snapshot, of an index or of one shard, into a new directory."""

import sqlite3
from pathlib import Path

from winnow.content_node.snapshots.finding import FILES, FoundSnapshot, find
from winnow.content_node.snapshots.renaming import rename_logs
from winnow.errors import ArtefactError
from winnow.storage.partial import restored_directory
from winnow.storage.progress import CopyProgress
from winnow.storage.pull import PulledFile, PullSource, pull_files


def restore(url: str, target: Path, progress: CopyProgress, name: str = "") -> FoundSnapshot:
    """Copies a snapshot into `target`, which appears once all is there and verified.

    `url` names a place, for the whole index, or a shard in it. What an interrupted restore has
    copied is used.

    Args:
        url: as `winnow index snapshot` was given it, or that and `/shard-00000-of-00003`.
        target: must not exist.
        progress: is told how it goes.
        name: of the snapshot; empty for the newest.

    Raises:
        NotFoundError: there is no such snapshot.
        ArtefactError: a file of it is damaged, or `target` exists or cannot be written.
        UnavailableError: the place cannot be reached, or another process restores `target`.

    """
    found = find(url, name)
    try:
        with restored_directory(target) as directory:
            pull_files(_source(found), _pulled(found), directory, progress)
            rename_logs(directory)
    except sqlite3.Error as error:
        raise ArtefactError(
            f"the log in {target.name}.partial cannot be written: {error}: make room, and run the "
            "same command again to go on"
        ) from error
    return found


def _source(found: FoundSnapshot) -> PullSource:
    return PullSource(
        place=found.place,
        what=f"snapshot {found.snapshot.name} at {found.place.name}",
        if_missing="take another snapshot",
        if_damaged="remove that file there, and take another snapshot",
    )


def _pulled(found: FoundSnapshot) -> dict[str, PulledFile]:
    return {
        path: PulledFile(f"{FILES}/{entry.sha256}", entry.sha256, entry.bytes)
        for path, entry in found.files.items()
    }
