"""Restores a snapshot of an index or of one shard into a new directory.

A restored shard diverges from its source, so its log gets a new name. Two diverging logs of one
name would be taken for one: writes would reach only one of them, and a front node would wait for
writes that were lost. A log that follows a journal keeps its name, since all replicas apply the
same entries.
"""

import contextlib
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from winnow.content_node.live.database import connect
from winnow.content_node.live.reading import LIVE, log_path
from winnow.content_node.live.schema import get_state, put_state
from winnow.content_node.merging.names import newest_first
from winnow.content_node.shard.manifest import SHARD_FILE, read_shard_manifest, write_manifest
from winnow.content_node.snapshots.finding import FILES, FoundSnapshot, find, split
from winnow.content_node.states.manifest import (
    STATES_FILE,
    read_states_manifest,
    write_states_manifest,
)
from winnow.domain.shard import shard_name
from winnow.errors import ArtefactError, NotFoundError, UnavailableError
from winnow.files.durable import sync_directory, sync_file
from winnow.files.opened import sha256
from winnow.journal.journal import JOURNAL
from winnow.quoting import shown
from winnow.storage.partial import restored_directory
from winnow.storage.pull import CopyProgress, PulledFile, PullSource, pull_files


def restore(url: str, target: Path, progress: CopyProgress, name: str = "") -> FoundSnapshot:
    """Copies a snapshot into `target`, which appears once all is there and verified.

    `url` names a place, for the whole index, or a shard in it. What an interrupted restore has
    copied is used.

    Args:
        url: as `winnow index snapshot` was given it, or that and `/shard-00000-of-00003`.
        target: must not exist.
        progress: is told how it goes.
        name: of the snapshot; empty for the newest.

    Raises NotFoundError if there is no such snapshot. Raises ArtefactError if a file of it is
    damaged, or `target` exists or cannot be written. Raises UnavailableError if the place cannot be
    reached, or another process restores `target`.

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
        storage=found.place,
        source=f"snapshot {found.snapshot.name} at {found.place.name}",
        advice_if_missing="take another snapshot",
        advice_if_damaged="remove that file there, and take another snapshot",
    )


def _pulled(found: FoundSnapshot) -> dict[str, PulledFile]:
    return {
        path: PulledFile(f"{FILES}/{entry.sha256}", entry.sha256, entry.bytes)
        for path, entry in found.files.items()
    }


def rename_logs(directory: Path) -> None:
    """Renames the logs in a restored directory, an index or a shard.

    Raises ArtefactError if a manifest is damaged, and OSError or `sqlite3.Error` if one cannot be
    written.
    """
    for shard in (directory, *directory.iterdir()):
        if log_path(shard).exists():
            _rename(shard, uuid4().hex)


def _rename(shard: Path, name: str) -> None:
    with contextlib.closing(connect(log_path(shard))) as connection:
        state = get_state(connection)
        if state.log_id.startswith(JOURNAL):
            return
        connection.execute("BEGIN IMMEDIATE")
        put_state(connection, replace(state, log_id=name))
        connection.execute("COMMIT")
    sync_file(log_path(shard))
    for generation in newest_first(each.name for each in (shard / LIVE).iterdir()):
        place = shard / LIVE / generation
        manifest = read_shard_manifest(place)
        renamed = write_manifest(place / SHARD_FILE, manifest.model_copy(update={"log_id": name}))
        sync_directory(place)
        _rename_states(place, manifest.generation, renamed.generation)


def _rename_states(directory: Path, before: str, after: str) -> None:
    """The rows are the same under the new name of the generation."""
    if not (directory / STATES_FILE).exists():
        return
    with contextlib.suppress(ArtefactError):  # then they are not used
        states = read_states_manifest(directory)
        if states.generation == before:
            write_states_manifest(directory, states.model_copy(update={"generation": after}))


_EXAMPLE = shard_name(0, 3)


@dataclass(frozen=True, slots=True)
class PulledShard:
    """The result of a pull."""

    restored: FoundSnapshot | None
    """The restored snapshot; None if the shard was there before, and stays."""
    unreachable: str = ""
    """Why the present shard could not be compared with the snapshot."""


def pull(url: str, target: Path, progress: CopyProgress, name: str = "") -> PulledShard:
    """Restores the shard that `url` names into `target`, unless it lies there already.

    Writes that the shard has taken since are never lost: a present shard is not replaced, not even
    by a newer snapshot. `name` is that of the snapshot; empty for the newest.

    Raises NotFoundError or ArtefactError or UnavailableError as `restore`; NotFoundError also if
    `url` names no shard, ArtefactError if another one, or another build of it, is in `target`.
    Where a shard is in `target`, it needs neither the place nor a good snapshot there.
    """
    place, shard = split(url)
    if not shard:
        raise NotFoundError(
            f"{shown(url)} names no shard: put one behind it, such as "
            f"{shown(place).rstrip('/')}/{_EXAMPLE}"
        )
    if not target.exists():
        return PulledShard(restore(url, target, progress, name))
    read_shard_manifest(target)  # or it is none
    try:
        found = find(url, name)
    except (UnavailableError, NotFoundError, ArtefactError) as error:
        return PulledShard(None, str(error))
    expected = found.files[SHARD_FILE].sha256
    if sha256(target / SHARD_FILE) != expected:
        raise ArtefactError(
            f"{target} holds another shard, or another build of it, than snapshot "
            f"{found.snapshot.name} at {shown(url)}: move it away, or pull into another directory"
        )
    return PulledShard(None)
