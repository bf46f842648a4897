"""The snapshots of a place, and which of them a URL and a name mean.

PLACE/snapshots/NAME.json     the manifest of a snapshot, written last
PLACE/files/SHA-256           files of all snapshots, each under its checksum, once
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from winnow.content_node.shard.manifest import FileEntry
from winnow.content_node.snapshots.manifest import Snapshot, SnapshotShard, parsed_snapshot
from winnow.errors import NotFoundError
from winnow.quoting import quoted
from winnow.storage import Storage, open_storage

SNAPSHOTS, FILES = "snapshots", "files"
_SUFFIX = ".json"
_SHARD = re.compile(r"shard-[0-9]{5}-of-[0-9]{5}")
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class FoundSnapshot:
    """A snapshot, or one shard of it."""

    place: Storage
    snapshot: Snapshot
    shard: str
    """Its directory; empty for the whole index."""

    @property
    def files(self) -> dict[str, FileEntry]:
        """By their paths in the directory that is restored."""
        return self.snapshot.below(self.shard)

    @property
    def parts(self) -> tuple[SnapshotShard, ...]:
        """The shards among them."""
        parts = self.snapshot.parts
        return tuple(each for each in parts if self.shard in ("", self.snapshot.place(each.shard)))


def snapshot_place(url: str) -> Storage:
    """The place of snapshots at `url`; raises UnavailableError if there is no way to it."""
    return open_storage(url, "snapshots")


def split(url: str) -> tuple[str, str]:
    """The place in `url`, and the shard in it; empty for the whole index."""
    place, slash, last = url.rstrip("/").rpartition("/")
    return (place, last) if slash and _SHARD.fullmatch(last) else (url, "")


def find(url: str, name: str = "") -> FoundSnapshot:
    """What `url` names, a place of snapshots or a shard in it; the newest if `name` is empty.
    Raises NotFoundError if there is no such snapshot. Raises ArtefactError if it, or a newer one,
    is damaged. Raises UnavailableError if the place cannot be reached.
    """
    root, shard = split(url)
    place = snapshot_place(root)
    snapshot = named(place, name) if name else newest(place, shard)
    if not shard and not snapshot.whole:
        parts = ", ".join(snapshot.place(part.shard) for part in snapshot.parts)
        raise NotFoundError(
            f"snapshot {snapshot.name} at {place.name} is not of a whole index: restore {parts}"
        )
    if not snapshot.below(shard):
        raise NotFoundError(f"snapshot {snapshot.name} at {place.name} has no {shard}")
    return FoundSnapshot(place, snapshot, shard)


def names(place: Storage) -> list[str]:
    """The names of the snapshots of a place, the newest first."""
    found = (name for name in place.sizes(SNAPSHOTS) if name.endswith(_SUFFIX))
    return sorted((name.removesuffix(_SUFFIX) for name in found), reverse=True)


def snapshots(place: Storage) -> Iterator[Snapshot]:
    """All of a place, the newest first. Raises ArtefactError if one is damaged."""
    for name in names(place):
        if (snapshot := _read(place, name)) is not None:
            yield snapshot


def named(place: Storage, name: str) -> Snapshot:
    """The snapshot with this name. Raises NotFoundError if there is none."""
    snapshot = _read(place, name) if name in (there := names(place)) else None
    if snapshot is None:
        listed = ", ".join(there[:_SHOWN]) or "none"
        raise NotFoundError(f"no snapshot {quoted(name)} at {place.name}; there are {listed}")
    return snapshot


def newest(place: Storage, shard: str) -> Snapshot:
    """The newest that has this shard; of the whole index if `shard` is empty. Raises NotFoundError
    if there is none. Raises ArtefactError if a newer one is damaged.
    """
    nearly: Snapshot | None = None
    for snapshot in snapshots(place):
        if snapshot.whole if not shard else snapshot.below(shard):
            return snapshot
        nearly = nearly or snapshot
    if nearly is None:
        raise NotFoundError(
            f"there is no snapshot at {place.name}: take one with `winnow index snapshot`"
        )
    example = nearly.place(nearly.parts[0].shard)
    if shard:
        raise NotFoundError(
            f"no snapshot at {place.name} has {shard}; {nearly.name} has shards such as {example}"
        )
    raise NotFoundError(
        f"no snapshot at {place.name} is of a whole index: restore a shard of it, such as "
        f"{place.name.rstrip('/')}/{example}"
    )


def _read(place: Storage, name: str) -> Snapshot | None:
    """The snapshot; None if it was removed since it was listed."""
    path = f"{SNAPSHOTS}/{name}{_SUFFIX}"
    content = place.read(path)
    if content is None:
        return None
    return parsed_snapshot(content, f"{place.name.rstrip('/')}/{path}")
