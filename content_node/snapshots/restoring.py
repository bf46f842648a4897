"""Restores a snapshot of an index or of one shard into a new directory.

A restored shard takes other writes than its source, so its log gets a new id. Shards with the same
log id count as replicas: a front node would send a write to one of them, and wait until the other
one has it. A log that follows a journal keeps its id, since all replicas apply the
same entries.
"""

import contextlib
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from winnow.content_node.live.database import connect
from winnow.content_node.live.reading import log_path
from winnow.content_node.live.schema import get_state, put_state
from winnow.content_node.merging.names import LIVE, newest_first
from winnow.content_node.shard.manifest import SHARD_FILE, read_shard_manifest, write_manifest
from winnow.content_node.snapshots.pulling import pull_shards
from winnow.content_node.snapshots.stored_snapshots import (
    FILES,
    FoundSnapshot,
    find_snapshot,
    split_url,
)
from winnow.content_node.states.relabelling import relabel_data
from winnow.domain.shard import shard_name
from winnow.errors import ArtefactError, NotFoundError, UnavailableError
from winnow.files.durable import sync_directory, sync_file
from winnow.journal.journal import JOURNAL
from winnow.quoting import shown
from winnow.storage.partial import restored_directory
from winnow.storage.pull import CopyProgress, PulledFile, PullSource


def restore_snapshot(
    url: str, target: Path, progress: CopyProgress, name: str = ""
) -> FoundSnapshot:
    """Copies a snapshot into `target`, which appears once all files are copied and verified.

    Files that an interrupted restore has copied are reused. Precomputed data that is damaged in the
    storage is left out.

    Args:
        url: the URL of snapshots; with `/shard-00000-of-00003` appended, it restores one shard.
        target: the new directory; must not exist.
        progress: shows the progress.
        name: the name of the snapshot; empty for the newest.

    Raises NotFoundError if there is no such snapshot. Raises ArtefactError if one of its files is
    damaged, or `target` exists or cannot be written. Raises UnavailableError if the storage cannot
    be reached, or another process restores to `target`.

    """
    found = find_snapshot(url, name)
    try:
        with restored_directory(target) as directory:
            pull_shards(pull_source(found), pulled_files(found), directory, progress)
            rename_logs(directory)
    except sqlite3.Error as error:
        raise ArtefactError(
            f"the log in {target.name}.partial cannot be written: {error}: make room, and run the "
            "same command again to resume"
        ) from error
    return found


def pull_source(snapshot: FoundSnapshot) -> PullSource:
    """Returns the storage of a snapshot, with texts for errors."""
    return PullSource(
        storage=snapshot.storage,
        source=f"snapshot {snapshot.snapshot.name} at {snapshot.storage.name}",
        advice_if_missing="take another snapshot",
        advice_if_damaged="remove that file there, and take another snapshot",
    )


def pulled_files(snapshot: FoundSnapshot) -> dict[str, PulledFile]:
    """Returns the files to pull, by their paths in the restored directory."""
    return {
        path: PulledFile(f"{FILES}/{entry.sha256}", entry.sha256, entry.bytes)
        for path, entry in snapshot.files.items()
    }


def rename_logs(directory: Path) -> None:
    """Gives new ids to the logs in a restored directory, which is an index or a shard.

    Raises ArtefactError if a manifest is damaged, and OSError or `sqlite3.Error` if a file cannot
    be written.
    """
    for shard in (directory, *directory.iterdir()):
        if log_path(shard).exists():
            _rename_log(shard, uuid4().hex)


def _rename_log(shard: Path, log_id: str) -> None:
    """Changes the id of a log, also in the manifests of generations merged from this log."""
    with contextlib.closing(connect(log_path(shard))) as connection:
        state = get_state(connection)
        if state.log_id.startswith(JOURNAL):
            return
        connection.execute("BEGIN IMMEDIATE")
        put_state(connection, replace(state, log_id=log_id))
        connection.execute("COMMIT")
    sync_file(log_path(shard))
    names = newest_first(each.name for each in (shard / LIVE).iterdir())
    # the base of a half has the id of the half's log
    for directory in (shard, *(shard / LIVE / each for each in names)):
        manifest = read_shard_manifest(directory)
        if not manifest.log_id:
            continue
        renamed = write_manifest(
            directory / SHARD_FILE, manifest.model_copy(update={"log_id": log_id})
        )
        sync_directory(directory)
        relabel_data(directory, manifest.generation, renamed.generation)


@dataclass(frozen=True, slots=True)
class PulledShard:
    """The result of a pull."""

    restored: FoundSnapshot | None
    """The restored snapshot; None if `target` had the shard already."""
    unreachable: str = ""
    """Why the existing shard could not be compared with the snapshot."""


def restore_if_missing(
    url: str, target: Path, progress: CopyProgress, name: str = ""
) -> PulledShard:
    """Restores the shard that `url` names into `target`, unless it exists there already.

    An existing shard is never replaced, not even by a newer snapshot, so that no write is lost.
    If the shard exists, the storage may be unreachable. `name` is the name of the snapshot;
    empty for the newest.

    Raises NotFoundError if `url` names no shard. Raises ArtefactError if `target` has another
    shard, or another build of the shard. Other errors are those of `restore_snapshot`.
    """
    root, shard = split_url(url)
    if not shard:
        raise NotFoundError(
            f"{shown(url)} names no shard: append one, such as "
            f"{shown(root).rstrip('/')}/{shard_name(0, 3)}"
        )
    if not target.exists():
        return PulledShard(restore_snapshot(url, target, progress, name))
    held = read_shard_manifest(target)
    try:
        found = find_snapshot(url, name)
    except (UnavailableError, NotFoundError, ArtefactError) as error:
        return PulledShard(None, str(error))
    # not by the manifest, since restoring a half changes the id of its log there
    expected = {name: entry.sha256 for name, entry in found.files.items()}
    # in an index with tenants, a merge removes most files of the built shard
    names = held.files.keys() & expected.keys() if held.has_tenants else held.files
    differs = any(expected.get(name) != held.files[name].sha256 for name in names)
    if differs or held.index_id != found.snapshot.index_id:
        raise ArtefactError(
            f"{target} holds another shard, or another build of the shard, than snapshot "
            f"{found.snapshot.name} at {shown(url)}: move it away, or pull into another directory"
        )
    return PulledShard(None)
