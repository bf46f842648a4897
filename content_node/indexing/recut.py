"""An index as the source of another one: its passages, vectors and later writes are taken over.

This changes the number of shards or the graphs, or brings an index of an older version up to date,
without encoding the passages again, which takes by far the longest.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from winnow.bundle import Manifest
from winnow.content_node.indexing.verify import identity_faults
from winnow.content_node.indexing.written import WrittenShard, written
from winnow.content_node.live.entry import Logged
from winnow.content_node.live.locks import LOCK, DirectoryLock
from winnow.content_node.live.opening import expect_base, open_log
from winnow.content_node.live.reading import log_path, state_of
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.shard.manifest import read_index_manifest, read_shard_manifest
from winnow.domain.shard import INDEX_FILE, shard_name
from winnow.errors import ArtefactError
from winnow.files.opened import sha256, verify
from winnow.quoting import many


def is_index(source: Path) -> bool:
    """Whether `source` is the directory of an index."""
    return (source / INDEX_FILE).is_file()


@contextlib.contextmanager
def at_rest(index: Path) -> Iterator[None]:
    """Keeps every node from writing to an index.

    Raises:
        ArtefactError: a node is writing to it, or has begun to.
        OSError: a shard cannot be locked.

    """
    with contextlib.ExitStack() as held:
        for shard in _shards(index):
            if (lock := log_path(shard).with_name(LOCK)).exists():
                held.callback(_lock(lock).release)
        before = fingerprint(index)
        yield
        # a shard without writes has no lock that could be held
        if fingerprint(index) != before:
            raise ArtefactError(f"{index} was written to while it was taken over: build again")


def fingerprint(index: Path) -> str:
    """A checksum of all that a build from an index depends on: its manifest and its logs.

    Raises:
        ArtefactError: a manifest or the state of a log is damaged.

    """
    built = sha256(index / INDEX_FILE)
    states = [state_of(log_path(shard)) for shard in _shards(index)]
    if not any(states):
        return built
    logs = [[each.log_id, each.last, each.link.hex()] if each else None for each in states]
    return hashlib.sha256(json.dumps([built, logs]).encode()).hexdigest()


def sources(index: Path, bundle: Manifest) -> list[tuple[Path, WrittenShard]]:
    """The directory and the present state of every shard, whose passages are verified.

    Raises:
        ArtefactError: a file is missing or damaged, or the index was encoded by another bundle.

    """
    manifest = read_index_manifest(index)
    if manifest.encoding_fingerprint != bundle.encoding_fingerprint:
        raise ArtefactError(
            f"{index} was encoded by bundle {manifest.bundle_name} "
            f"({manifest.encoding_fingerprint}), not by {bundle.name} "
            f"({bundle.encoding_fingerprint}): give that bundle, or build from the passages"
        )
    found, passages = [], 0
    for shard, directory in enumerate(_shards(index)):
        own = read_shard_manifest(directory)
        if faults := identity_faults(own, shard, manifest):
            raise ArtefactError(f"{directory} is not of this index: {'; '.join(faults)}")
        open_newest(directory, 0, _verify_passages, feeding=False)
        found.append((directory, written(directory)))
        passages += own.passages
    if passages != manifest.passages:
        raise ArtefactError(
            f"the shards of {index} hold {many(passages, 'passage')}, its manifest says "
            f"{manifest.passages}"
        )
    return found


def replay(shard: Path, now: WrittenShard, apply: Callable[[Logged], None]) -> None:
    """Checks the log of a shard, and calls `apply` with each write that its base lacks.

    Raises:
        ArtefactError: the log is damaged, or does not belong to the base.

    """

    def take(write: Logged) -> None:
        if write.sequence > now.manifest.sequence:
            apply(write)

    with contextlib.closing(open_log(shard, lambda _: take, feeding=False)) as log:
        expect_base(now.manifest, shard, log.log_id, log.trimmed, log.last)


def _shards(index: Path) -> list[Path]:
    shards = read_index_manifest(index).shards
    return [index / shard_name(shard, shards) for shard in range(shards)]


def _lock(path: Path) -> DirectoryLock:
    try:
        return DirectoryLock(path, shared=True)
    except ArtefactError as error:
        raise ArtefactError(
            f"a node is feeding {path.parent.parent}: stop it; or take a snapshot with `winnow "
            "index snapshot`, restore it, and build from that"
        ) from error


def _verify_passages(directory: Path) -> None:
    manifest = read_shard_manifest(directory)
    entry = manifest.files[manifest.store]
    verify(directory / manifest.store, entry.sha256, entry.bytes)
