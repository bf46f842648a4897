"""Copies files from storage into a local directory, and verifies their checksums."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from winnow.errors import ArtefactError
from winnow.files.durable import sync_file
from winnow.files.opened import verify
from winnow.storage.storage import OnCopied

MB = 1_000_000


class CopyProgress(Protocol):
    """Receives the progress of copying, in megabytes."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        """Begins a stage of `total` megabytes, `done` of which are already copied."""

    def advance(self, steps: int) -> None:
        """Reports that `steps` more megabytes were copied."""


class NoProgress:
    """A `CopyProgress` that shows nothing."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        pass

    def advance(self, steps: int) -> None:
        pass


def start_copying(
    progress: CopyProgress, stage: str, sizes: Iterable[int], missing: Iterable[int]
) -> OnCopied:
    """Begins a stage of copying files; returns the function to call with copied bytes.

    Args:
        progress: receives the progress.
        stage: name of the stage, for display.
        sizes: size of each file in bytes.
        missing: size of each file that is not yet copied, in bytes.

    """
    total = sum(sizes)
    progress.start(stage, total // MB, (total - sum(missing)) // MB)
    pending = 0

    def on_copied(count: int) -> None:
        nonlocal pending
        megabytes, pending = divmod(pending + count, MB)
        if megabytes:
            progress.advance(megabytes)

    return on_copied


class FileSource(Protocol):
    """The part of `Storage` that pulling needs."""

    def download(self, path: str, target: Path, on_copied: OnCopied) -> None:
        """Copies a stored file to a local file; see `Storage.download`."""


@dataclass(frozen=True, slots=True)
class PulledFile:
    """A file to pull: its path, checksum and size, from a manifest."""

    path: str
    """Path of the file in the storage."""
    sha256: str
    bytes: int


class PulledFileError(ArtefactError):
    """A file to pull is missing or damaged in its storage."""

    def __init__(self, message: str, name: str) -> None:
        """`name` is the path of the file in the directory of the pull."""
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSource:
    """The storage from which files are pulled, and texts for its error messages."""

    storage: FileSource
    source: str
    """Name of the files as a whole, such as `the bundle at s3://models/mini`."""
    advice_if_missing: str
    """What to do if the storage lacks a file."""
    advice_if_damaged: str
    """What to do if a stored file is damaged."""

    def missing(self, name: str, file: PulledFile) -> PulledFileError:
        return PulledFileError(
            f"{name} of {self.source} is missing ({file.path}): {self.advice_if_missing}", name
        )

    def damaged(self, name: str, file: PulledFile) -> PulledFileError:
        return PulledFileError(
            f"{name} of {self.source} is damaged ({file.path}): {self.advice_if_damaged}", name
        )


def pull_files(
    source: PullSource, files: Mapping[str, PulledFile], directory: Path, progress: CopyProgress
) -> None:
    """Makes `directory` hold exactly `files`, whose keys are paths in the directory.

    Intact files of an earlier pull are not copied again.

    Raises PulledFileError if a stored file is missing or damaged. Raises UnavailableError if the
    storage cannot be reached. Raises OSError if a file cannot be written.
    """
    _remove_others(directory, files)
    missing = {name: file for name, file in files.items() if not _is_intact(directory / name, file)}
    sizes, pending = ([file.bytes for file in each.values()] for each in (files, missing))
    on_copied = start_copying(progress, "copying, MB", sizes, pending)
    for name, file in missing.items():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.storage.download(file.path, target, on_copied)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise source.missing(name, file) from error
        sync_file(target)
        if not _is_intact(target, file):
            target.unlink()
            raise source.damaged(name, file)


def _remove_others(directory: Path, files: Mapping[str, PulledFile]) -> None:
    """Removes files of an earlier pull that are not in `files`."""
    for each in sorted(directory.rglob("*"), reverse=True):  # files before their folders
        if not each.is_dir():
            if each.relative_to(directory).as_posix() not in files:
                each.unlink()
        elif not any(each.iterdir()):
            each.rmdir()


def _is_intact(path: Path, file: PulledFile) -> bool:
    try:
        verify(path, file.sha256, file.bytes)
    except ArtefactError:
        return False
    return True
