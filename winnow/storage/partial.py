"""The directory beside a target in which the target is restored: `TARGET.partial`.

An interrupted restore leaves it, and the next restore resumes with the files in it. One process at
a time holds its lock.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.files.durable import sync_directory
from winnow.files.lock import locked

_LOCK, _CONTENT = "lock", "content"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class PartialDirectory:
    """A directory in which one restore writes, until all files are there."""

    def __init__(self, target: Path, directory: Path) -> None:
        self._target, self._directory = target, directory
        self.content = directory / _CONTENT

    def publish(self) -> None:
        """Renames the content to the target, durably, and removes what is left."""
        for directory, _, _ in os.walk(self.content):
            sync_directory(Path(directory))
        _expect_none(self._target)
        self.content.rename(self._target)
        sync_directory(self._target.parent)
        with contextlib.suppress(OSError):
            (self._directory / _LOCK).unlink()
            self._directory.rmdir()


@contextlib.contextmanager
def restored_directory(target: Path) -> Iterator[Path]:
    """Gives a directory to fill, and renames it to `target` once the block has filled it. Raises
    ArtefactError if the target exists, something else is in its partial directory, or a file cannot
    be written. Raises UnavailableError if another process restores it.
    """
    try:
        with open_partial(target) as partial:
            yield partial.content
            partial.publish()
    except OSError as error:
        advice = "make room, and" if error.errno in _FULL else "see that it can be written, and"
        raise ArtefactError(
            f"cannot write {error.filename or target}: {error.strerror or error}: {advice} run the "
            "same command again to go on"
        ) from error


@contextlib.contextmanager
def open_partial(target: Path) -> Iterator[PartialDirectory]:
    """The directory beside `target`, for this restore alone. It stays if the restore fails. Raises
    ArtefactError if the target exists, or something else is there. Raises UnavailableError if
    another process restores it. Raises OSError if it cannot be made.
    """
    _expect_none(target)
    directory = target.with_name(target.name + ".partial")
    _expect_ours(directory)
    with _locked(directory, target):
        _expect_none(target)  # the process that held the lock may have finished just now
        partial = PartialDirectory(target, directory)
        partial.content.mkdir(exist_ok=True)
        yield partial


def _expect_none(target: Path) -> None:
    if not target.name or os.path.lexists(target):
        raise ArtefactError(
            f"{target} exists already, and nothing is ever restored over it: remove it, or restore "
            "into another directory"
        )


def _expect_ours(directory: Path) -> None:
    """What a user keeps there is not written into."""
    if directory.is_dir():
        others = {each.name for each in directory.iterdir()} - {_LOCK, _CONTENT}
        if others:
            raise ArtefactError(
                f"{directory} is needed to restore in, and holds {min(others)}, which does not "
                "belong there: move it away, or restore into another directory"
            )


@contextlib.contextmanager
def _locked(directory: Path, target: Path) -> Iterator[None]:
    """Holds the lock of `directory`, which it creates."""
    busy = f"another process is restoring {target}: wait for it, or restore into another directory"
    with contextlib.ExitStack() as held:
        while True:
            directory.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # the holder just removed the directory
                held.enter_context(locked(directory / _LOCK, busy))
                break
        yield
