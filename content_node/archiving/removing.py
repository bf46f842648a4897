"""Removes the archives of shards that are deleted from this node. Blocks: use a thread."""

from collections.abc import Iterable
from pathlib import Path

import structlog

from winnow.content_node.archiving.folder import recorded_folder
from winnow.content_node.archiving.stub import folder_url, read_stub
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.snapshots.stored_snapshots import (
    FILES,
    SNAPSHOTS,
    open_snapshots,
    snapshot_names,
)
from winnow.errors import UnavailableError, WinnowError
from winnow.storage import open_storage

_log = structlog.get_logger("content_node")


def try_remove_archives(directories: Iterable[Path], archive: str) -> bool:
    """Removes the archives of shards whose directories are deleted next; logs failures.

    `archive` is the present URL of the archive; empty for those of the stubs. Returns False if an
    archive cannot be reached, so that a later attempt may succeed. Call it before a directory is
    deleted, because only the directory names the folder.
    """
    removed = [_try_remove(each, archive) for each in directories]
    return all(removed)


def _try_remove(directory: Path, archive: str) -> bool:
    try:
        _remove_archive(directory, archive)
    except (WinnowError, OSError) as error:
        _log.warning(
            "archive of a deleted shard not removed", directory=str(directory), reason=str(error)
        )
        return not isinstance(error, UnavailableError)
    return True


def _remove_archive(directory: Path, archive: str) -> None:
    """Removes the files of a shard from the archive, its manifests first."""
    folder, stub = recorded_folder(directory), read_stub(directory)
    if not folder:
        if stub is not None:  # a copied directory has the same stub, so its folder may be in use
            _log.warning(
                "archive of a deleted shard may be left",
                directory=str(directory),
                url=stub.url,
                folder=stub.folder,
            )
        return
    url = archive or (stub.url if stub is not None else "")
    if not url:
        return  # the shard was restored, and the node has no archive any more
    built = stub.manifest if stub is not None else read_shard_manifest(directory)
    # an archive that is not mounted must not count as empty
    open_storage(url, "archived shards", must_exist=True).folders()
    storage = open_snapshots(folder_url(url, built.index_id, folder))
    for name in snapshot_names(storage):
        storage.remove(f"{SNAPSHOTS}/{name}.json")
    for name in storage.sizes(FILES):
        storage.remove(f"{FILES}/{name}")
