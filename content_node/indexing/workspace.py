"""The directory beside the target in which an index is built, `OUT.partial`, and its lock."""

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


class OnFailure(enum.Enum):
    """What happens to the workspace of a failed build."""

    REMOVE = enum.auto()
    """The workspace is removed: no later run could use it."""
    KEEP = enum.auto()
    """The workspace is kept: a later run resumes from it."""
    LEAVE = enum.auto()
    """The workspace is not touched: it may belong to another build."""


class Workspace:
    """The directory of one build, from which only files of builds are ever removed."""

    def __init__(self, target: Path, directory: Path, reused: bool) -> None:
        """`reused` means that an earlier build created `directory`."""
        self.target, self._reused = target, reused
        self.directory = directory
        self.staging = directory / _STAGING
        self.index = directory / _INDEX
        self.on_failure = OnFailure.LEAVE if self.staging.exists() else OnFailure.REMOVE

    def publish(self) -> None:
        """Renames the finished index to its target, and removes the workspace."""
        sync_directory(self.index)
        self.index.rename(self.target)
        sync_directory(self.target.parent)
        self.remove()

    def remove(self) -> None:
        """Removes the files of builds; the staging database last, since it identifies the build."""
        shutil.rmtree(self.index, ignore_errors=True)
        files = [*self.directory.glob(f"{_STAGING}-*"), self.staging, self.directory / _LOCK]
        with contextlib.suppress(OSError):
            for file in files:
                file.unlink(missing_ok=True)
            if self._reused:
                self.directory.rmdir()


def staging_path(target: Path) -> Path:
    """Returns the path of the staging database of a build of `target`.

    Raises:
        ArtefactError: the target has no name, such as `.` or `/`, which always exist.

    """
    if not target.name:
        _check_absent(target)
    return target.with_name(target.name + ".partial") / _STAGING


@contextlib.contextmanager
def open_workspace(target: Path, on_kept: Callable[[Path], None]) -> Iterator[Workspace]:
    """Creates and locks the workspace of `target`; calls `on_kept` if a failed build keeps it.

    Raises:
        ArtefactError: the target exists, another build is running, or the directory has files that
            no build created.
        OSError: the directory cannot be created.

    """
    _check_absent(target)
    directory = staging_path(target).parent
    created = [each for each in (directory, *directory.parents) if not each.exists()]
    reused = _has_build(directory)
    try:
        with _locked_directory(directory, target):
            yield from _use_workspace(Workspace(target, directory, reused), on_kept)
    finally:
        for each in created:
            with contextlib.suppress(OSError):
                each.rmdir()  # only if it is empty


def _use_workspace(workspace: Workspace, on_kept: Callable[[Path], None]) -> Iterator[Workspace]:
    """Yields the workspace; removes or keeps it after a failure."""
    try:
        _check_absent(workspace.target)  # the build that held the lock may have finished just now
        yield workspace
    except BaseException:
        if workspace.on_failure is OnFailure.REMOVE:
            workspace.remove()
        elif workspace.on_failure is OnFailure.KEEP:
            on_kept(workspace.directory)
        raise


def _check_absent(target: Path) -> None:
    if os.path.lexists(target):
        raise ArtefactError(f"{target} exists already: remove it, or choose another directory")


def _has_build(directory: Path) -> bool:
    """Whether an earlier build created `directory`; raises ArtefactError if it has other files."""
    if not directory.is_dir():
        return False
    names = {each.name for each in directory.iterdir()}
    if names - {_LOCK} and _STAGING not in names:
        raise ArtefactError(
            f"the build needs {directory}, but {min(names - {_LOCK})} in it is not a file of a "
            f"build: move it away, or choose another directory"
        )
    return bool(names)


@contextlib.contextmanager
def _locked_directory(directory: Path, target: Path) -> Iterator[None]:
    """Locks `directory`; the kernel releases the lock when the process ends, even by a kill."""
    path = directory / _LOCK
    while True:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ArtefactError(
                    f"another build is writing {target}: wait for it, or choose another directory"
                ) from error
            # retry if the build that held the lock has removed its file meanwhile
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                yield
                return
        finally:
            os.close(descriptor)
