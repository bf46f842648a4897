"""All files that a snapshot holds of one shard: as built, its newest generation, and its log.

Files are opened first, so that renames and removals do not change what is copied. A node may be
writing and merging meanwhile. The order makes the copy consistent: the files of a generation are
opened first and stay readable even if a merge removes it. Then the log is copied. It holds every
later write, unless it was trimmed in between; then all is begun again.
"""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
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
from winnow.content_node.live.reading import LIVE, check_log, log_path
from winnow.content_node.merging.names import generation_sequence
from winnow.content_node.merging.newest import newest_name
from winnow.content_node.shard.manifest import FileEntry, ShardManifest, open_shard_manifest
from winnow.content_node.states.manifest import DATA, STARTS, STATES_FILE, open_states_manifest
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.opened import OpenFile

_log = structlog.get_logger("content_node")


@dataclass(frozen=True, slots=True)
class Item:
    """An open file of a snapshot."""

    path: str
    """In the directory that the snapshot is of."""
    file: OpenFile
    entry: FileEntry
    verified: bool = False
    """Whether `entry` was computed from the file; else a manifest claims it."""

    def within(self, directory: str) -> "Item":
        """The same file, with its path in the directory above."""
        return replace(self, path=f"{directory}/{self.path}")


def opened_base(directory: Path) -> tuple[ShardManifest, list[Item]]:
    """A directory that was built or merged: it never changes, and its manifest vouches for it.
    Raises ArtefactError if a file is missing, or there is no good manifest.
    """
    manifest, named = open_shard_manifest(directory)
    items = [
        Item(name, OpenFile(directory / name), entry) for name, entry in manifest.files.items()
    ]
    return manifest, [*items, item_of(named)]


def item_of(file: OpenFile) -> Item:
    """A file that no manifest vouches for."""
    with file.reader() as reader:
        digest = hashlib.file_digest(reader, "sha256").hexdigest()
    return Item(file.path.name, file, FileEntry(sha256=digest, bytes=file.size), verified=True)


def opened_states(directory: Path, generation: str) -> list[Item]:
    """The states beside a base, as their manifest vouches for them; none where there are none, or
    they are not of this generation.
    """
    if not (directory / STATES_FILE).exists():
        return []
    try:
        manifest, named = open_states_manifest(directory)
        if manifest.generation != generation:
            raise ArtefactError("they are of another generation")
        data, starts = OpenFile(directory / DATA), OpenFile(directory / STARTS)
        of_data = FileEntry(sha256=manifest.sha256, bytes=manifest.bytes)
        of_starts = FileEntry(sha256=manifest.starts_sha256, bytes=manifest.starts_bytes)
        return [Item(DATA, data, of_data), Item(STARTS, starts, of_starts), item_of(named)]
    except (ArtefactError, ValidationError) as error:
        warn_without_states(directory, str(error))
        return []


def warn_without_states(directory: Path, reason: str) -> None:
    """Logs that a snapshot is taken without the states of a shard."""
    _log.warning(
        "the states of the shard are not in the snapshot", directory=str(directory), reason=reason
    )


@dataclass(frozen=True, slots=True)
class LogCopy:
    """A copy of a log, to which nothing is written."""

    items: tuple[Item, ...]
    log_id: str
    last: int
    """The last write."""
    trimmed: int
    """The last write that was trimmed, which a base has to hold."""


def copy_log(shard: Path, room: Path) -> LogCopy | None:
    """Copies the log of a shard into `room`, an empty directory; None if there is no log.

    Every write that was acknowledged before is in it. Nobody who writes has to wait.

    Raises ArtefactError if the log is damaged, or missing while other files of it are there. Raises
    UnavailableError if it cannot be read from here, or there is no room for the copy.
    """
    source = log_path(shard)
    told = read_acknowledged(source.with_name(ACKNOWLEDGED_FILE))
    if not source.exists():
        check_no_log_files(source, told)
        return None
    copy = room / source.name
    copy_database(source, copy)
    state, trimmed = check_log(source, told, lambda _: lambda _: None, copy)
    AcknowledgedFile(room / ACKNOWLEDGED_FILE, AcknowledgedWrite(state.last, state.link)).close()
    (room / LOCK_FILE).touch()  # or a node that feeds what is restored would find none to hold
    items = (item_of(OpenFile(room / name)) for name in (copy.name, ACKNOWLEDGED_FILE, LOCK_FILE))
    return LogCopy(tuple(items), state.log_id, state.last, trimmed.last)


_TRIES = 5
"""Each takes less time than a merge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The files of a shard."""

    manifest: ShardManifest
    """Of the shard as it was built."""
    items: tuple[Item, ...]
    sequence: int
    """The last write that is in them."""
    passages: int
    """In the newest generation."""
    states: tuple[Item, ...] = ()
    """Beside the newest generation; it is whole without them."""


@contextlib.contextmanager
def open_contents(directory: Path) -> Iterator[Contents]:
    """The files of the shard in `directory`, which may be served and written to meanwhile. Raises
    ArtefactError if one is missing, or damaged. Raises UnavailableError if the log cannot be
    copied.
    """
    built, base = opened_base(directory)
    with tempfile.TemporaryDirectory(prefix="winnow-snapshot-") as room:
        for attempt in range(_TRIES):
            place = Path(room) / str(attempt)
            place.mkdir()
            if (found := _consistent(directory, built, place)) is not None:
                newest, log = found
                passages = (newest.manifest if newest else built).passages
                sequence = log.last if log else newest.sequence if newest else 0
                items = (*base, *_below_live(newest, log))
                states = _states(directory, built, newest)
                yield Contents(
                    manifest=built, items=items, sequence=sequence, passages=passages, states=states
                )
                return
    raise UnavailableError(
        f"{directory} was merged again and again while it was copied: take the snapshot later"
    )


@dataclass(frozen=True, slots=True)
class _Generation:
    """A merged generation."""

    name: str
    manifest: ShardManifest
    items: tuple[Item, ...]

    @property
    def sequence(self) -> int:
        return generation_sequence(self.name) or 0


def _consistent(
    directory: Path, built: ShardManifest, room: Path
) -> tuple[_Generation | None, LogCopy | None] | None:
    """A generation, and a log that has every write since; None if they do not fit together.

    Raises ArtefactError where no node would serve them: what it refuses, nobody is to restore.
    """
    name = newest_name(directory)
    try:
        newest = _opened(directory, name) if name else None
    except ArtefactError:
        if newest_name(directory) == name:
            raise
        return None  # a merge has removed it
    log = copy_log(directory, room)
    base = newest.manifest if newest else built
    if log is None:
        check_log_continues_base(base, directory, "", 0, 0)
    elif log.trimmed > base.sequence and newest_name(directory) != name:
        return None  # a merge has forgotten what comes after it
    else:
        check_log_continues_base(base, directory, log.log_id, log.trimmed, log.last)
    return newest, log


def _opened(directory: Path, name: str) -> _Generation:
    manifest, items = opened_base(directory / LIVE / name)
    return _Generation(name, manifest, tuple(item.within(name) for item in items))


def _states(directory: Path, built: ShardManifest, newest: _Generation | None) -> tuple[Item, ...]:
    if newest is None:
        return tuple(opened_states(directory, built.generation))
    items = opened_states(directory / LIVE / newest.name, newest.manifest.generation)
    return tuple(item.within(newest.name).within(LIVE) for item in items)


def _below_live(newest: _Generation | None, log: LogCopy | None) -> Iterator[Item]:
    for items in (newest.items if newest else (), log.items if log else ()):
        yield from (item.within(LIVE) for item in items)
