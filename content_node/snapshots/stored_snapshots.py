"""Finds snapshots in storage by URL and name.

URL/snapshots/NAME.json     the manifest of a snapshot, written last
URL/files/SHA-256           files of all snapshots, each stored once under its checksum
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from winnow.content_node.shard.manifest import FileEntry
from winnow.content_node.snapshots.manifest import Snapshot, SnapshotShard, parse_snapshot
from winnow.errors import NotFoundError
from winnow.quoting import quoted
from winnow.storage import Storage, open_storage

SNAPSHOTS, FILES = "snapshots", "files"
_SUFFIX = ".json"
_SHARD = re.compile(r"shard-[0-9]{5,}-of-[0-9]{5}")
_MAX_LISTED = 10
"""Maximum number of names of snapshots in an error."""


@dataclass(frozen=True, slots=True)
class FoundSnapshot:
    """A snapshot in storage, or one shard of it."""

    storage: Storage
    """The storage that has the snapshot."""
    snapshot: Snapshot
    shard: str
    """The directory name of the shard; empty for the whole index."""

    @property
    def files(self) -> dict[str, FileEntry]:
        """The files by their paths relative to the restored directory."""
        return self.snapshot.files_below(self.shard)

    @property
    def parts(self) -> tuple[SnapshotShard, ...]:
        """The shards that a restore copies."""
        return tuple(
            part
            for part in self.snapshot.parts
            if self.shard in ("", self.snapshot.directory(part.shard))
        )


def open_snapshots(url: str) -> Storage:
    """Opens the storage of snapshots at `url`; raises UnavailableError if that fails."""
    return open_storage(url, "snapshots")


def split_url(url: str) -> tuple[str, str]:
    """Splits a URL into the URL of snapshots and the shard, which is empty for an index."""
    root, slash, last = url.rstrip("/").rpartition("/")
    return (root, last) if slash and _SHARD.fullmatch(last) else (url, "")


def find_snapshot(url: str, name: str = "") -> FoundSnapshot:
    """Finds the snapshot called `name` at `url`; the newest one if `name` is empty.

    If the URL ends with the name of a shard, the snapshot must have this shard.

    Raises NotFoundError if there is no such snapshot. Raises ArtefactError if the snapshot, or a
    newer one, is damaged. Raises UnavailableError if the storage cannot be reached.
    """
    root, shard = split_url(url)
    storage = open_snapshots(root)
    snapshot = read_snapshot(storage, name) if name else newest_snapshot(storage, shard)
    if not shard and not snapshot.whole:
        parts = ", ".join(snapshot.directory(part.shard) for part in snapshot.parts)
        raise NotFoundError(
            f"snapshot {snapshot.name} at {storage.name} is not of a whole index: restore {parts}"
        )
    if not snapshot.files_below(shard):
        raise NotFoundError(f"snapshot {snapshot.name} at {storage.name} has no {shard}")
    return FoundSnapshot(storage, snapshot, shard)


def snapshot_names(storage: Storage) -> list[str]:
    """Lists the names of all snapshots in a storage, the newest first."""
    files = (name for name in storage.sizes(SNAPSHOTS) if name.endswith(_SUFFIX))
    return sorted((name.removesuffix(_SUFFIX) for name in files), reverse=True)


def read_snapshots(storage: Storage) -> Iterator[Snapshot]:
    """Reads all snapshots, the newest first. Raises ArtefactError if one is damaged."""
    for name in snapshot_names(storage):
        if (snapshot := _read_snapshot(storage, name)) is not None:
            yield snapshot


def read_snapshot(storage: Storage, name: str) -> Snapshot:
    """Reads the snapshot with this name. Raises NotFoundError if there is none."""
    snapshot = (
        _read_snapshot(storage, name) if name in (existing := snapshot_names(storage)) else None
    )
    if snapshot is None:
        listed = ", ".join(existing[:_MAX_LISTED]) or "none"
        raise NotFoundError(f"no snapshot {quoted(name)} at {storage.name}; there are {listed}")
    return snapshot


def newest_snapshot(storage: Storage, shard: str) -> Snapshot:
    """Finds the newest snapshot that has `shard`; if `shard` is empty, one of the whole index.

    Raises NotFoundError if there is none. Raises ArtefactError if a newer snapshot is damaged.
    """
    unsuitable: Snapshot | None = None
    for snapshot in read_snapshots(storage):
        if snapshot.whole if not shard else snapshot.files_below(shard):
            return snapshot
        unsuitable = unsuitable or snapshot
    if unsuitable is None:
        raise NotFoundError(
            f"there is no snapshot at {storage.name}: take one with `winnow index snapshot`"
        )
    example = unsuitable.directory(unsuitable.parts[0].shard)
    if shard:
        raise NotFoundError(
            f"no snapshot at {storage.name} has {shard}: choose a shard of the snapshot "
            f"{unsuitable.name}, such as {example}"
        )
    raise NotFoundError(
        f"no snapshot at {storage.name} is of a whole index: restore a shard of the snapshot "
        f"{unsuitable.name}, such as {storage.name.rstrip('/')}/{example}"
    )


def _read_snapshot(storage: Storage, name: str) -> Snapshot | None:
    """Reads a snapshot; returns None if it was removed since it was listed."""
    path = f"{SNAPSHOTS}/{name}{_SUFFIX}"
    content = storage.read(path)
    if content is None:
        return None
    return parse_snapshot(content, f"{storage.name.rstrip('/')}/{path}")
