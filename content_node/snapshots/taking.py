"""Takes a snapshot of an index, or of one shard, while it is served and written to."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from winnow.content_node.indexing.verify import identity_faults
from winnow.content_node.live.custody import check_owned
from winnow.content_node.shard.manifest import (
    SHARD_FILE,
    FileEntry,
    IndexManifest,
    ShardManifest,
    read_index_manifest,
)
from winnow.content_node.snapshots.contents import (
    ShardFiles,
    SnapshotFile,
    hashed_file,
    open_shard_files,
    warn_data_omitted,
)
from winnow.content_node.snapshots.last_snapshot import write_last_snapshot
from winnow.content_node.snapshots.manifest import Snapshot, SnapshotShard
from winnow.content_node.snapshots.stored_snapshots import FILES, SNAPSHOTS, open_snapshots
from winnow.domain.shard import INDEX_FILE, shard_name
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.index_directory import present_shards
from winnow.reading.states_kind import KINDS, kind_of_file
from winnow.storage import Storage
from winnow.storage.pull import CopyProgress, start_copying
from winnow.storage.storage import OnCopied


class SnapshotUploader:
    """Copies files to a storage of snapshots; copies no file that is there already."""

    def __init__(self, storage: Storage, progress: CopyProgress) -> None:
        self._storage, self._progress = storage, progress
        self._sizes = storage.sizes(FILES)
        """Bytes of each file in the storage, by its SHA-256."""

    def upload(self, stage: str, files: Sequence[SnapshotFile]) -> None:
        """Copies the files that the storage lacks.

        Raises ArtefactError if a file differs from its manifest, or was written to. Raises
        UnavailableError if the storage cannot be written.
        """
        missing = [file for file in files if not self._has_file(file)]
        sizes, missing_sizes = ([file.entry.bytes for file in each] for each in (files, missing))
        advance = start_copying(self._progress, stage, sizes, missing_sizes)
        for file in missing:
            self._upload_file(file, advance)

    def _has_file(self, file: SnapshotFile) -> bool:
        """Whether the storage has the whole file; an interrupted copy is shorter."""
        return self._sizes.get(file.entry.sha256) == file.entry.bytes

    def _upload_file(self, file: SnapshotFile, advance: OnCopied) -> None:
        if not file.verified:
            file.file.verify(file.entry.sha256, file.entry.bytes)
        self._storage.upload(f"{FILES}/{file.entry.sha256}", file.file.link, advance)
        file.file.check()
        self._sizes[file.entry.sha256] = file.entry.bytes


_DIGEST_DIGITS = 8


def take_snapshot(
    source: Path,
    url: str,
    progress: CopyProgress,
    clock: Callable[[], datetime],
    *,
    is_backup: bool = True,
) -> Snapshot:
    """Copies an index, or one shard, to `url`; a file that is there already is not copied again.

    Each shard is copied as it was after one of its writes; the snapshot has the number of this
    write. The manifest is written last. So an interrupted call leaves no snapshot, and the next
    call reuses the copied files. If it `is_backup`, its time is recorded beside the shards.

    Raises ArtefactError if the source is damaged, or is neither an index nor a shard; or if `url`
    is the directory of an index or shard. Raises UnavailableError if the storage cannot be reached
    or written.
    """
    storage = open_snapshots(url)
    if any((Path(storage.name) / name).exists() for name in (INDEX_FILE, SHARD_FILE)):
        raise ArtefactError(
            f"{storage.name} is an index or a shard: give another directory, only for snapshots"
        )
    builder = _SnapshotBuilder(SnapshotUploader(storage, progress))
    if (source / INDEX_FILE).exists():
        builder.add_index(source)
    else:
        builder.add_shard(source)
    snapshot = builder.build(clock())
    storage.write(f"{SNAPSHOTS}/{snapshot.name}.json", snapshot.encode())
    if is_backup:
        builder.record(snapshot)
    return snapshot


class _SnapshotBuilder:
    """Copies the shards of a snapshot, and builds its manifest."""

    def __init__(self, uploader: SnapshotUploader) -> None:
        self._uploader = uploader
        self._manifest: ShardManifest | None = None
        self._parts: list[SnapshotShard] = []
        self._sources: list[Path] = []
        self._files: dict[str, FileEntry] = {}

    def add_index(self, directory: Path) -> None:
        """Copies all shards of an index, and its manifest."""
        index = read_index_manifest(directory)
        manifest_file = hashed_file(OpenFile(directory / INDEX_FILE))
        for shard in present_shards(directory, index.shards):
            self.add_shard(shard, index)
        self._uploader.upload("copying the index's manifest", [manifest_file])
        self._files[manifest_file.path] = manifest_file.entry

    def add_shard(self, directory: Path, index: IndexManifest | None = None) -> None:
        """Copies a shard; with an `index`, checks that it is of that index."""
        check_owned(directory)
        with open_shard_files(directory) as opened:
            manifest = opened.manifest
            if index is not None and (faults := identity_faults(manifest, directory, index)):
                raise ArtefactError(f"{directory} is not of its index: {'; '.join(faults)}")
            stage = f"copying shard {manifest.shard} of {manifest.shards}, MB"
            self._uploader.upload(stage, opened.files)
            files = (*opened.files, *self._upload_states(directory, opened))
        name = shard_name(manifest.shard, manifest.shards)
        self._files |= {file.within(name).path: file.entry for file in files}
        self._parts.append(
            SnapshotShard(shard=manifest.shard, sequence=opened.sequence, passages=opened.passages)
        )
        self._sources.append(directory)
        self._manifest = manifest

    def _upload_states(self, directory: Path, opened: ShardFiles) -> tuple[SnapshotFile, ...]:
        """Copies and returns precomputed data; omits data that is damaged or being rewritten."""
        shard, copied = opened.manifest, list[SnapshotFile]()
        for kind in KINDS:
            files = [each for each in opened.states if kind_of_file(each.path) is kind]
            if not files:
                continue
            try:
                stage = f"copying {kind.noun} of shard {shard.shard} of {shard.shards}, MB"
                self._uploader.upload(stage, files)
            except ArtefactError as error:
                warn_data_omitted(kind, directory, str(error))
            else:
                copied += files
        return tuple(copied)

    def build(self, now: datetime) -> Snapshot:
        """Returns the manifest of the copied shards."""
        manifest = self._manifest
        if manifest is None:
            raise ArtefactError("the index has no shards")
        return Snapshot(
            name=_snapshot_name(now, self._files),
            taken=now.isoformat(timespec="milliseconds"),
            index_id=manifest.index_id,
            shards=manifest.shards,
            parts=tuple(self._parts),
            files=self._files,
        )

    def record(self, snapshot: Snapshot) -> None:
        """Records in every copied shard that this snapshot was taken."""
        for directory, part in zip(self._sources, self._parts, strict=True):
            write_last_snapshot(directory, snapshot, part.sequence)


def _snapshot_name(now: datetime, files: Mapping[str, FileEntry]) -> str:
    """Returns a name that sorts by time and differs for simultaneous snapshots."""
    content = json.dumps({path: entry.sha256 for path, entry in files.items()}, sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03}-{digest[:_DIGEST_DIGITS]}"
