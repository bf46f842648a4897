"""Opens the files of one shard for a snapshot: the built shard, its newest generation, and its log.

A node may write and merge meanwhile. Open files stay readable even if a merge removes them. After
the files of a generation are opened, the log is copied. The copy has every later write, unless the
log was trimmed in between. In this case, both are opened again.
"""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from pydantic import ValidationError

from winnow.content_node.live.acknowledged import (
    ACKNOWLEDGED_FILE,
    AcknowledgedFile,
    AcknowledgedWrite,
    read_acknowledged,
)
from winnow.content_node.live.copying import copy_database
from winnow.content_node.live.locks import LOCK_FILE
from winnow.content_node.live.opening import check_log_continues_base, check_no_log_files
from winnow.content_node.live.reading import check_log, log_path
from winnow.content_node.merging.names import LIVE, generation_sequence
from winnow.content_node.merging.newest import newest_name
from winnow.content_node.shard.built_files import is_emptied, remaining_files
from winnow.content_node.shard.manifest import FileEntry, ShardManifest, open_shard_manifest
from winnow.content_node.states.manifest import open_states_manifest
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.opened import OpenFile
from winnow.reading.states_kind import KINDS, StatesKind

_log = structlog.get_logger("content_node")


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """An open file that a snapshot copies."""

    path: str
    """The path relative to the directory of the shard or index."""
    file: OpenFile
    entry: FileEntry
    """The checksum and the size of the file."""
    verified: bool = False
    """Whether `entry` was computed from the file; otherwise it was copied from a manifest."""

    def within(self, directory: str) -> "SnapshotFile":
        """Returns the same file with its path relative to the parent of `directory`."""
        return replace(self, path=f"{directory}/{self.path}")


def open_generation(directory: Path) -> tuple[ShardManifest, list[SnapshotFile]]:
    """Opens the files of a built or merged generation, which never change.

    Raises ArtefactError if a file is missing, or the manifest is missing or damaged.
    """
    manifest, manifest_file = open_shard_manifest(directory)
    files = _open_files(directory, manifest, manifest.files)
    return manifest, [*files, hashed_file(manifest_file)]


def _open_built(directory: Path) -> tuple[ShardManifest, list[SnapshotFile]]:
    """Opens the files of a built shard, or what is left of them in an index with tenants."""
    try:
        return open_generation(directory)
    except ArtefactError:
        manifest, manifest_file = open_shard_manifest(directory)
        if not is_emptied(directory, manifest):
            raise
        files = _open_files(directory, manifest, remaining_files(manifest))
        return manifest, [*files, hashed_file(manifest_file)]


def _open_files(
    directory: Path, manifest: ShardManifest, names: Iterable[str]
) -> list[SnapshotFile]:
    return [SnapshotFile(name, OpenFile(directory / name), manifest.files[name]) for name in names]


def hashed_file(file: OpenFile) -> SnapshotFile:
    """Computes the checksum of a file for which no manifest has one."""
    with file.reader() as reader:
        digest = hashlib.file_digest(reader, "sha256").hexdigest()
    return SnapshotFile(
        file.path.name, file, FileEntry(sha256=digest, bytes=file.size), verified=True
    )


def open_states(directory: Path, generation: str) -> list[SnapshotFile]:
    """Opens the files of precomputed data of all kinds; none without data of this generation."""
    return [file for kind in KINDS for file in _open_kind(kind, directory, generation)]


def _open_kind(kind: StatesKind, directory: Path, generation: str) -> list[SnapshotFile]:
    if not (directory / kind.manifest).exists():
        return []
    try:
        manifest, manifest_file = open_states_manifest(directory, kind)
        if manifest.generation != generation:
            raise ArtefactError(f"the {kind.noun} are of another generation")
        data, starts = OpenFile(directory / kind.data), OpenFile(directory / kind.starts_file)
        data_entry = FileEntry(sha256=manifest.sha256, bytes=manifest.bytes)
        starts_entry = FileEntry(sha256=manifest.starts_sha256, bytes=manifest.starts_bytes)
        if (data.size, starts.size) != (manifest.bytes, manifest.starts_bytes):
            raise ArtefactError(
                f"the files of the {kind.noun} have other sizes than their manifest says"
            )
        return [
            SnapshotFile(kind.data, data, data_entry),
            SnapshotFile(kind.starts_file, starts, starts_entry),
            hashed_file(manifest_file),
        ]
    except (ArtefactError, ValidationError) as error:
        warn_data_omitted(kind, directory, str(error))
        return []


def warn_data_omitted(kind: StatesKind, directory: Path, reason: str) -> None:
    """Logs that a snapshot or a copy has no precomputed data of a kind."""
    _log.warning(
        f"the {kind.noun} of the shard are not in the snapshot",
        directory=str(directory),
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCopy:
    """A private copy of a log."""

    files: tuple[SnapshotFile, ...]
    log_id: str
    last_write: int
    """The sequence number of the last write."""
    last_trimmed: int
    """Sequence number of the last write that was trimmed from the log; a base must hold it."""
    link: bytes
    """The checksum of the last write and of all writes before it."""


def copy_log(shard: Path, directory: Path) -> LogCopy | None:
    """Copies the log of a shard into an empty `directory`; returns None if there is no log.

    The copy has every write that was acknowledged before. Copying delays no write.

    Raises ArtefactError if the log is damaged, or missing although other files of it exist. Raises
    UnavailableError if it cannot be read by this user, or there is no room for the copy.
    """
    source = log_path(shard)
    acknowledged = read_acknowledged(source.with_name(ACKNOWLEDGED_FILE))
    if not source.exists():
        check_no_log_files(source, acknowledged)
        return None
    copy = directory / source.name
    copy_database(source, copy)
    state, trimmed = check_log(source, acknowledged, lambda _: lambda _: None, copy)
    last = AcknowledgedWrite(state.last, state.link)
    AcknowledgedFile(directory / ACKNOWLEDGED_FILE, last).close()
    (directory / LOCK_FILE).touch()  # a node that feeds the restored shard locks it
    names = (copy.name, ACKNOWLEDGED_FILE, LOCK_FILE)
    files = tuple(hashed_file(OpenFile(directory / name)) for name in names)
    return LogCopy(
        files=files,
        log_id=state.log_id,
        last_write=state.last,
        last_trimmed=trimmed.last,
        link=state.link,
    )


_MAX_ATTEMPTS = 5
"""Maximum number of attempts. A merge may disturb an attempt, but takes longer than an attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardFiles:
    """The open files of a shard, consistent with each other."""

    manifest: ShardManifest
    """The manifest of the built shard."""
    files: tuple[SnapshotFile, ...]
    sequence: int
    """The number of the last write that the files hold."""
    link: bytes = b""
    """The checksum of that write and of all writes before it; empty without a log."""
    passages: int
    """Number of passages in the newest generation."""
    states: tuple[SnapshotFile, ...] = ()
    """Precomputed states and token vectors of the newest generation. They are optional."""


@contextlib.contextmanager
def open_shard_files(directory: Path) -> Iterator[ShardFiles]:
    """Opens the files of a shard, while a node may serve it and write to it.

    Raises ArtefactError if a file is missing or damaged, or the shard is being archived. Raises
    UnavailableError if the log cannot be copied, or merges disturbed every attempt.
    """
    with tempfile.TemporaryDirectory(prefix="winnow-snapshot-") as temporary:
        for attempt in range(_MAX_ATTEMPTS):
            log_directory = Path(temporary) / str(attempt)
            log_directory.mkdir()
            built, base = _open_built(directory)
            manifest_file = base[-1].file
            try:
                opened = _open_newest(directory, built, log_directory)
            except (ArtefactError, UnavailableError):
                if manifest_file.has_its_path:
                    raise
                opened = None
            # archiving replaces the manifest before it removes a file
            if opened is not None and manifest_file.has_its_path:
                newest, log = opened
                passages = (newest.manifest if newest else built).passages
                sequence = log.last_write if log else newest.sequence if newest else 0
                files = (*base, *_files_below_live(newest, log))
                states = _open_states(directory, built, newest)
                yield ShardFiles(
                    manifest=built,
                    files=files,
                    sequence=sequence,
                    link=log.link if log else b"",
                    passages=passages,
                    states=states,
                )
                return
    raise UnavailableError(
        f"{directory} was merged in each of {_MAX_ATTEMPTS} attempts to copy it: take the snapshot "
        "later"
    )


@dataclass(frozen=True, slots=True)
class _Generation:
    """A merged generation."""

    name: str
    """The name of its directory."""
    manifest: ShardManifest
    files: tuple[SnapshotFile, ...]

    @property
    def sequence(self) -> int:
        """The number of the last write that the generation holds."""
        return generation_sequence(self.name) or 0


def _open_newest(
    directory: Path, built: ShardManifest, log_directory: Path
) -> tuple[_Generation | None, LogCopy | None] | None:
    """Opens the newest generation and copies the log; returns None if a merge disturbed this.

    Raises ArtefactError if the log does not continue the generation, so that no node could serve
    the snapshot.
    """
    name = newest_name(directory)
    try:
        newest = _open_merged(directory, name) if name else None
    except ArtefactError:
        if newest_name(directory) == name:
            raise
        return None  # a merge has removed the generation
    log = copy_log(directory, log_directory)
    base = newest.manifest if newest else built
    if log is None:
        check_log_continues_base(base, directory, "", 0, 0)
    elif log.last_trimmed > base.sequence and newest_name(directory) != name:
        return None  # a merge has trimmed writes that this generation lacks
    else:
        check_log_continues_base(base, directory, log.log_id, log.last_trimmed, log.last_write)
    return newest, log


def _open_merged(directory: Path, name: str) -> _Generation:
    manifest, files = open_generation(directory / LIVE / name)
    return _Generation(name, manifest, tuple(file.within(name) for file in files))


def _open_states(
    directory: Path, built: ShardManifest, newest: _Generation | None
) -> tuple[SnapshotFile, ...]:
    """Opens the states of the newest generation, or of the built shard without one."""
    if newest is None:
        return tuple(open_states(directory, built.generation))
    files = open_states(directory / LIVE / newest.name, newest.manifest.generation)
    return tuple(file.within(newest.name).within(LIVE) for file in files)


def _files_below_live(newest: _Generation | None, log: LogCopy | None) -> Iterator[SnapshotFile]:
    for files in (newest.files if newest else (), log.files if log else ()):
        yield from (file.within(LIVE) for file in files)
