"""The directory beside the target in which an index is built: `OUT.partial`.

Knows its lock and the files that may be removed from it; knows nothing of passages.
"""

import contextlib
import enum
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.files.durable import sync_directory

_STAGING, _LOCK, _INDEX = "staging.sqlite", "lock", "index"


class Fate(enum.Enum):
    """Whether the workspace of a failed build is removed."""

    REMOVE = enum.auto()
    """It is removed: another run could use nothing of it."""
    KEEP = enum.auto()
    """It is kept: another run resumes from it."""
    LEAVE = enum.auto()
    """It is not touched: it belongs to another build, or its state is not known."""


class Workspace:
    """The directory of one build. Only files that a build makes are ever removed from it."""

    def __init__(self, target: Path, directory: Path, begun: bool) -> None:
        """`begun`: an earlier build made `directory`."""
        self.target, self._begun = target, begun
        self.directory = directory
        self.staging = directory / _STAGING
        self.index = directory / _INDEX
        self.fate = Fate.LEAVE if self.staging.exists() else Fate.REMOVE

    def publish(self) -> None:
        """Renames the finished index to its target, and removes the workspace."""
        sync_directory(self.index)
        self.index.rename(self.target)
        sync_directory(self.target.parent)
        self.remove()

    def remove(self) -> None:
        """Removes the files of builds; the staging database last, since it names the build."""
        shutil.rmtree(self.index, ignore_errors=True)
        made = [*self.directory.glob(f"{_STAGING}-*"), self.staging, self.directory / _LOCK]
        with contextlib.suppress(OSError):
            for each in made:
                each.unlink(missing_ok=True)
            if self._begun:
                self.directory.rmdir()


def staging_of(target: Path) -> Path:
    """The staging database of a build of `target`.

    Raises:
        ArtefactError: the target exists, as `.` and `/` do, which have no name.

    """
    if not target.name:
        _expect_none(target)
    return target.with_name(target.name + ".partial") / _STAGING


@contextlib.contextmanager
def open_workspace(target: Path, kept: Callable[[Path], None]) -> Iterator[Workspace]:
    """The workspace of `target`, for this build alone; calls `kept` if a failed build keeps it.

    Raises:
        ArtefactError: the target exists, another build is running, or other files are there.
        OSError: the directory cannot be made.

    """
    _expect_none(target)
    directory = staging_of(target).parent
    made = [each for each in (directory, *directory.parents) if not each.exists()]
    begun = _is_ours(directory)
    try:
        with _locked(directory, target):
            yield from _worked_in(Workspace(target, directory, begun), kept)
    finally:
        for each in made:
            with contextlib.suppress(OSError):
                each.rmdir()  # only if it is empty


def _worked_in(place: Workspace, kept: Callable[[Path], None]) -> Iterator[Workspace]:
    try:
        _expect_none(place.target)  # the build that held the lock may have finished just now
        yield place
    except BaseException:
        if place.fate is Fate.REMOVE:
            place.remove()
        elif place.fate is Fate.KEEP:
            kept(place.directory)
        raise


def _expect_none(target: Path) -> None:
    if os.path.lexists(target):
        raise ArtefactError(f"{target} exists already: remove it, or choose another --out")


def _is_ours(directory: Path) -> bool:
    """Whether an earlier build made `directory`. Files of a user are not written to."""
    if not directory.is_dir():
        return False
    held = {each.name for each in directory.iterdir()}
    if held - {_LOCK} and _STAGING not in held:
        raise ArtefactError(
            f"{directory} is needed for the build, and {min(held - {_LOCK})} in it is not of a "
            "build: move it away, or choose another --out"
        )
    return bool(held)


@contextlib.contextmanager
def _locked(directory: Path, target: Path) -> Iterator[None]:
    """Holds the lock of `directory`, which the kernel frees when the process ends in any way."""
    path = directory / _LOCK
    while True:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ArtefactError(
                    f"another build is writing {target}: wait for it, or choose another --out"
                ) from error
            # else its holder has removed it meanwhile
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                yield
                return
        finally:
            os.close(descriptor)
