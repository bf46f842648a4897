"""Verified downloads.

Copies files from a storage location into a local directory and checks each checksum.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from winnow.errors import ArtefactError
from winnow.files.durable import sync_file
from winnow.files.opened import verify
from winnow.storage.place import Advance, Place

MB = 1_000_000


class CopyProgress(Protocol):
    """An observer of copying, in megabytes."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        """Begins a stage, of which `done` is there already."""

    def advance(self, steps: int) -> None:
        """Adds steps to the present stage."""


class NoProgress:
    """A `CopyProgress` that shows nothing."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        pass

    def advance(self, steps: int) -> None:
        pass


def start_copying(
    progress: CopyProgress, stage: str, sizes: Iterable[int], missing: Iterable[int]
) -> Advance:
    """Begins a stage of copying files, and returns what counts its bytes.

    Args:
        progress: the observer.
        stage: what is done, for people.
        sizes: the bytes of each file.
        missing: the bytes of each file that is not there yet.

    """
    total = sum(sizes)
    progress.start(stage, total // MB, (total - sum(missing)) // MB)
    pending = 0

    def advance(count: int) -> None:
        nonlocal pending
        whole, pending = divmod(pending + count, MB)
        if whole:
            progress.advance(whole)

    return advance


@dataclass(frozen=True, slots=True)
class PulledFile:
    """A file of a place, as a manifest describes it."""

    path: str
    """Where it lies in the place."""
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSource:
    """The place that files are pulled from, and what errors say of it."""

    place: Place
    what: str
    """What the files belong to, with its place: `the bundle at s3://models/mini`."""
    if_missing: str
    if_damaged: str
    """What to do about a file that the place lacks, or has damaged."""

    def missing(self, name: str, file: PulledFile) -> ArtefactError:
        return ArtefactError(f"{name} of {self.what} is missing ({file.path}): {self.if_missing}")

    def damaged(self, name: str, file: PulledFile) -> ArtefactError:
        return ArtefactError(f"{name} of {self.what} is damaged ({file.path}): {self.if_damaged}")


def pull_files(
    source: PullSource, files: Mapping[str, PulledFile], directory: Path, progress: CopyProgress
) -> None:
    """Makes `directory` hold these files, by their paths in it, and no others.

    Files that an earlier pull has copied whole are not copied again.

    Raises ArtefactError if a file at the place is missing or damaged. Raises UnavailableError if
    the place cannot be reached. Raises OSError if a file cannot be written.
    """
    _remove_others(directory, files)
    missing = {name: file for name, file in files.items() if not _is_good(directory / name, file)}
    sizes, ahead = ([file.bytes for file in each.values()] for each in (files, missing))
    advance = start_copying(progress, "copying, MB", sizes, ahead)
    for name, file in missing.items():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.place.download(file.path, target, advance)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise source.missing(name, file) from error
        sync_file(target)
        if not _is_good(target, file):
            target.unlink()
            raise source.damaged(name, file)


def _remove_others(directory: Path, files: Mapping[str, PulledFile]) -> None:
    """Removes what an interrupted pull of something else has left."""
    for each in sorted(directory.rglob("*"), reverse=True):  # files before their folders
        if not each.is_dir():
            if each.relative_to(directory).as_posix() not in files:
                each.unlink()
        elif not any(each.iterdir()):
            each.rmdir()


def _is_good(path: Path, file: PulledFile) -> bool:
    try:
        verify(path, file.sha256, file.bytes)
    except ArtefactError:
        return False
    return True
