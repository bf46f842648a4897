"""Reads an index as the source of a build: copies its passages, vectors and later writes.

Such a build changes the number of shards or the graphs, or upgrades an index of an older version.
The passages are not encoded again, which is by far the longest step of other builds.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from winnow.bundle import Manifest
from winnow.content_node.indexing.current_shard import CurrentShard, read_current_shard
from winnow.content_node.indexing.verify import identity_faults
from winnow.content_node.live.custody import check_owned
from winnow.content_node.live.locks import LOCK_FILE, DirectoryLock
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.opening import check_log_continues_base, open_log
from winnow.content_node.live.reading import log_path, read_state
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.shard.manifest import read_index_manifest, read_shard_manifest
from winnow.domain.partition import holds
from winnow.domain.shard import INDEX_FILE
from winnow.errors import ArtefactError
from winnow.files.opened import sha256, verify
from winnow.index_directory import present_shards
from winnow.quoting import many


def is_index(source: Path) -> bool:
    """Whether `source` is the directory of an index."""
    return (source / INDEX_FILE).is_file()


@contextlib.contextmanager
def lock_writes(index: Path) -> Iterator[None]:
    """Locks an index against writes of nodes.

    Raises:
        ArtefactError: a node is writing to the index, or began to write before the context ended.
        OSError: a shard cannot be locked.

    """
    with contextlib.ExitStack() as locks:
        for shard in _shard_directories(index):
            if (path := log_path(shard).with_name(LOCK_FILE)).exists():
                locks.callback(_lock_shard(path).release)
        before = source_fingerprint(index)
        yield
        # a shard without writes has no lock file yet, so a node may have begun to write
        if source_fingerprint(index) != before:
            raise ArtefactError(
                f"{index} was written to while its passages were copied: run the build again"
            )


def source_fingerprint(index: Path) -> str:
    """Returns a checksum of the manifest of an index and of the last writes in its logs.

    Raises:
        ArtefactError: a manifest or the state of a log is damaged.

    """
    built = sha256(index / INDEX_FILE)
    states = [read_state(log_path(shard)) for shard in _shard_directories(index)]
    if not any(states):
        return built
    logs = [[each.log_id, each.last, each.link.hex()] if each else None for each in states]
    return hashlib.sha256(json.dumps([built, logs]).encode()).hexdigest()


def verified_shards(index: Path, bundle: Manifest) -> list[tuple[Path, CurrentShard]]:
    """Verifies the passages of every shard; returns the shards' directories and current states.

    Raises:
        ArtefactError: a file is missing or damaged, or the index was encoded by another bundle.

    """
    manifest = read_index_manifest(index)
    if manifest.encoding_fingerprint != bundle.encoding_fingerprint:
        raise ArtefactError(
            f"{index} was encoded by bundle {manifest.bundle_name} "
            f"({manifest.encoding_fingerprint}), not by {bundle.name} "
            f"({bundle.encoding_fingerprint}): give {manifest.bundle_name} by --bundle, or build "
            "from the passages"
        )
    shards, passages = [], 0
    for directory in _shard_directories(index):
        built = read_shard_manifest(directory)
        if faults := identity_faults(built, directory, manifest):
            raise ArtefactError(f"{directory} is not of this index: {'; '.join(faults)}")
        open_newest(directory, 0, _verify_passages, feeding=False)
        shards.append((directory, read_current_shard(directory)))
        passages += built.passages
    # the halves of a shard that was split have its merged writes
    if passages != manifest.passages and len(shards) == manifest.shards:
        raise ArtefactError(
            f"the shards of {index} hold {many(passages, 'passage')}, but its manifest says "
            f"{manifest.passages}"
        )
    return shards


def replay_unmerged(
    directory: Path, shard: CurrentShard, apply: Callable[[LoggedWrite], None]
) -> None:
    """Checks the log of a shard, and calls `apply` with each write that its base lacks.

    Raises:
        ArtefactError: the log is damaged, or does not belong to the base.

    """

    def apply_unmerged(write: LoggedWrite) -> None:
        # the log of a half has the writes of the other half as deletions
        is_own = holds(shard.manifest.shard, shard.manifest.shards, write.id)
        if is_own and write.sequence > shard.manifest.sequence:
            apply(write)

    with contextlib.closing(open_log(directory, lambda _: apply_unmerged, feeding=False)) as log:
        check_log_continues_base(shard.manifest, directory, log.log_id, log.trimmed, log.last)


def _shard_directories(index: Path) -> list[Path]:
    shards = present_shards(index, read_index_manifest(index).shards)
    for shard in shards:
        check_owned(shard)
    return shards


def _lock_shard(path: Path) -> DirectoryLock:
    try:
        return DirectoryLock(path, shared=True)
    except ArtefactError as error:
        raise ArtefactError(
            f"a node is feeding {path.parent.parent}: stop it; or take a snapshot with `winnow "
            "index snapshot`, restore it, and build from the restored index"
        ) from error


def _verify_passages(directory: Path) -> None:
    manifest = read_shard_manifest(directory)
    entry = manifest.files[manifest.store]
    verify(directory / manifest.store, entry.sha256, entry.bytes)
