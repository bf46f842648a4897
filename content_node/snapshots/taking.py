"""Takes a snapshot of an index, or of one shard, while it is served and written to."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path

from winnow.content_node.indexing.verify import identity_faults
from winnow.content_node.shard.manifest import (
    SHARD_FILE,
    FileEntry,
    IndexManifest,
    ShardManifest,
    read_index_manifest,
)
from winnow.content_node.snapshots.contents import (
    Contents,
    Item,
    item_of,
    open_contents,
    warn_without_states,
)
from winnow.content_node.snapshots.finding import FILES, SNAPSHOTS, snapshot_place
from winnow.content_node.snapshots.last_snapshot import write_last_snapshot
from winnow.content_node.snapshots.manifest import Snapshot, SnapshotShard
from winnow.domain.shard import INDEX_FILE, shard_name
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.storage import Storage
from winnow.storage.pull import CopyProgress, start_copying
from winnow.storage.storage import OnCopied


class SnapshotUpload:
    """Copies files to a place of snapshots, each once, even if several snapshots have it."""

    def __init__(self, place: Storage, progress: CopyProgress) -> None:
        self._place, self._progress = place, progress
        self._there = place.sizes(FILES)

    def upload(self, stage: str, items: Iterable[Item]) -> None:
        """Copies those of `items` that are not there. Raises ArtefactError if one is not what its
        manifest says, or was written to. Raises UnavailableError if the place cannot be written.
        """
        items = list(items)
        missing = [item for item in items if not self._has(item)]
        sizes, ahead = ([item.entry.bytes for item in each] for each in (items, missing))
        advance = start_copying(self._progress, stage, sizes, ahead)
        for item in missing:
            self._upload(item, advance)

    def _has(self, item: Item) -> bool:
        """Whether the place has the file; one that was cut off is shorter."""
        return self._there.get(item.entry.sha256) == item.entry.bytes

    def _upload(self, item: Item, advance: OnCopied) -> None:
        if not item.verified:
            item.file.verify(item.entry.sha256, item.entry.bytes)
        self._place.upload(f"{FILES}/{item.entry.sha256}", item.file.link, advance)
        item.file.check()
        self._there[item.entry.sha256] = item.entry.bytes


_DIGITS = 8


def take_snapshot(
    source: Path, url: str, progress: CopyProgress, clock: Callable[[], datetime]
) -> Snapshot:
    """Copies an index, or one shard, to `url`; a file that lies there already is not copied again.

    Each shard is as it was after one of its writes, and the snapshot says which one. A snapshot
    exists once its manifest is written, last of all: if this is interrupted there is none, and the
    next one uses what was copied.

    Raises ArtefactError if the source is damaged, or is neither an index nor a shard; or `url` is
    the directory of an index or shard. Raises UnavailableError if the place cannot be reached or
    written.
    """
    place = snapshot_place(url)
    if any((Path(place.name) / name).exists() for name in (INDEX_FILE, SHARD_FILE)):
        raise ArtefactError(
            f"{place.name} is an index, or a shard of one: name a directory for snapshots alone"
        )
    taking = _Taking(SnapshotUpload(place, progress))
    if (source / INDEX_FILE).exists():
        taking.index(source)
    else:
        taking.shard(source)
    snapshot = taking.snapshot(clock())
    place.write(f"{SNAPSHOTS}/{snapshot.name}.json", snapshot.written())
    taking.note(snapshot)
    return snapshot


class _Taking:
    """The parts of a snapshot that were copied so far."""

    def __init__(self, upload: SnapshotUpload) -> None:
        self._upload = upload
        self._manifest: ShardManifest | None = None
        self._parts: list[SnapshotShard] = []
        self._sources: list[Path] = []
        self._files: dict[str, FileEntry] = {}

    def index(self, directory: Path) -> None:
        index = read_index_manifest(directory)
        named = item_of(OpenFile(directory / INDEX_FILE))
        for shard in range(index.shards):
            self.shard(directory / shard_name(shard, index.shards), index)
        self._upload.upload("copying the index's manifest", [named])
        self._files[named.path] = named.entry

    def shard(self, directory: Path, index: IndexManifest | None = None) -> None:
        with open_contents(directory) as contents:
            manifest = contents.manifest
            if index is not None:
                _expect_of(index, manifest, directory, len(self._parts))
            stage = f"copying shard {manifest.shard} of {manifest.shards}, MB"
            self._upload.upload(stage, contents.items)
            items = (*contents.items, *self._with_states(directory, contents))
        place = shard_name(manifest.shard, manifest.shards)
        self._files |= {item.within(place).path: item.entry for item in items}
        self._parts.append(
            SnapshotShard(
                shard=manifest.shard, sequence=contents.sequence, passages=contents.passages
            )
        )
        self._sources.append(directory)
        self._manifest = manifest

    def _with_states(self, directory: Path, contents: Contents) -> tuple[Item, ...]:
        """Derived: where they are damaged, or written again just now, they are left out."""
        if not contents.states:
            return ()
        shard = contents.manifest
        try:
            stage = f"copying states of shard {shard.shard} of {shard.shards}, MB"
            self._upload.upload(stage, contents.states)
        except ArtefactError as error:
            warn_without_states(directory, str(error))
            return ()
        return contents.states

    def snapshot(self, now: datetime) -> Snapshot:
        """Of all that was copied."""
        manifest = self._manifest
        if manifest is None:
            raise ArtefactError("an index without shards cannot be")
        return Snapshot(
            name=_name(now, self._files),
            taken=now.isoformat(timespec="milliseconds"),
            index_id=manifest.index_id,
            shards=manifest.shards,
            parts=tuple(self._parts),
            files=self._files,
        )

    def note(self, snapshot: Snapshot) -> None:
        """Notes in every shard that this complete snapshot was taken of it."""
        for directory, part in zip(self._sources, self._parts, strict=True):
            write_last_snapshot(directory, snapshot, part.sequence)


def _expect_of(index: IndexManifest, manifest: ShardManifest, directory: Path, shard: int) -> None:
    if faults := identity_faults(manifest, shard, index):
        raise ArtefactError(f"{directory} is not of its index: {'; '.join(faults)}")


def _name(now: datetime, files: Mapping[str, FileEntry]) -> str:
    """A name for the snapshot: names sort by time, and simultaneous snapshots differ."""
    content = json.dumps({path: entry.sha256 for path, entry in files.items()}, sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03}-{digest[:_DIGITS]}"
