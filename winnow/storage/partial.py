"""The directory `TARGET.partial`, to which a restore writes before it renames the result to TARGET.

An interrupted restore leaves the directory, so that the next restore can resume. Only one process
at a time holds the lock of the directory.
"""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.files.durable import sync_directory
from winnow.files.lock import locked

PARTIAL = ".partial"
_LOCK_FILE, _CONTENT_FOLDER = "lock", "content"
_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class PartialDirectory:
    """The partial directory of one restore."""

    def __init__(self, target: Path, directory: Path) -> None:
        self._target, self._directory = target, directory
        self.content = directory / _CONTENT_FOLDER

    def publish(self) -> None:
        """Renames the content to the target, durably, and removes the partial directory."""
        for directory, _, _ in os.walk(self.content):
            sync_directory(Path(directory))
        _check_target_is_free(self._target)
        self.content.rename(self._target)
        sync_directory(self._target.parent)
        with contextlib.suppress(OSError):
            (self._directory / _LOCK_FILE).unlink()
            self._directory.rmdir()


@contextlib.contextmanager
def restored_directory(target: Path) -> Iterator[Path]:
    """Yields a directory to fill, and renames it to `target` when the block succeeds.

    Raises ArtefactError if the target exists, its partial directory holds unrelated files, or a
    file cannot be written. Raises UnavailableError if another process restores the target.
    """
    try:
        with open_partial(target) as partial:
            yield partial.content
            partial.publish()
    except OSError as error:
        disk_full = error.errno in _DISK_FULL_ERRNOS
        advice = "free disk space" if disk_full else "make it writable"
        failed = ArtefactError(
            f"cannot write {error.filename or target}: {error.strerror or error}: {advice}, and "
            "run the same command again to resume"
        )
        reason = error.strerror or type(error).__name__
        raise failed.with_public(
            f"the restored files cannot be written ({reason}): {advice}"
        ) from error


@contextlib.contextmanager
def open_partial(target: Path) -> Iterator[PartialDirectory]:
    """Locks and yields the partial directory of `target`. The directory stays if the restore fails.

    Raises ArtefactError if the target exists, or the directory holds unrelated files. Raises
    UnavailableError if another process restores the target. Raises OSError if the directory cannot
    be created.
    """
    _check_target_is_free(target)
    directory = target.with_name(target.name + PARTIAL)
    _check_no_other_files(directory)
    with _locked(directory, target):
        _check_target_is_free(target)  # the process that held the lock may have finished just now
        partial = PartialDirectory(target, directory)
        partial.content.mkdir(exist_ok=True)
        yield partial


def remove_partial(target: Path) -> None:
    """Deletes the partial directory that an interrupted restore of `target` has left.

    Raises ArtefactError if the directory holds unrelated files, OSError if it cannot be deleted,
    and UnavailableError if a restore is running.
    """
    directory = target.with_name(target.name + PARTIAL)
    _check_no_other_files(directory)
    with _locked(directory, target):
        shutil.rmtree(directory)


def _check_target_is_free(target: Path) -> None:
    if not target.name or os.path.lexists(target):
        raise ArtefactError(
            f"{target} exists already, and a restore never overwrites: remove {target}, or restore "
            "into another directory"
        )


def _check_no_other_files(directory: Path) -> None:
    """Raises ArtefactError if the directory holds a user's files."""
    if directory.is_dir():
        others = {each.name for each in directory.iterdir()} - {_LOCK_FILE, _CONTENT_FOLDER}
        if others:
            raise ArtefactError(
                f"a restore writes to {directory} first, and that directory holds the unrelated "
                f"file {min(others)}: move that file away, or restore into another directory"
            )


@contextlib.contextmanager
def _locked(directory: Path, target: Path) -> Iterator[None]:
    """Creates `directory` and holds its lock."""
    busy = f"another process is restoring {target}: wait for it, or restore into another directory"
    with contextlib.ExitStack() as held:
        while True:
            directory.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(
                FileNotFoundError
            ):  # the holder has just removed the directory
                held.enter_context(locked(directory / _LOCK_FILE, busy))
                break
        yield
