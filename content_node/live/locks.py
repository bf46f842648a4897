"""Locks of a shard that takes writes: between processes, and between two threads."""

import fcntl
import os
import threading
import weakref
from pathlib import Path
from types import TracebackType

from winnow.errors import ArtefactError

LOCK = "lock"
"""The name of the file that is locked."""


class DirectoryLock:
    """A lock on a file, held until it is released or the process ends in any way.

    Children do not inherit it.
    """

    def __init__(self, path: Path, shared: bool = False) -> None:
        """Takes the lock of a file, which is made if it is missing; readers hold it `shared`.

        Raises:
            ArtefactError: another process holds it.
            OSError: the file cannot be made or opened.

        """
        flags = os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT
        self._descriptor = _open(path, flags)
        self._close = weakref.finalize(self, os.close, self._descriptor)
        try:
            fcntl.flock(
                self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
            )
        except BlockingIOError as error:
            self.release()
            raise ArtefactError(
                f"{path} is held by another node: only one may feed a shard; stop that one, or "
                "serve a copy of the shard"
            ) from error

    def release(self) -> None:
        """Releases the lock; does nothing the second time."""
        self._close()


class AlternatingLock:
    """A lock of two threads that goes to the waiting one, held in `with`.

    A plain lock goes again and again to the thread that releases it and wants it back at once.
    """

    def __init__(self) -> None:
        self._next, self._turn = threading.Lock(), threading.Lock()

    @property
    def awaited(self) -> bool:
        return self._next.locked()

    def __enter__(self) -> None:
        with self._next:
            self._turn.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._turn.release()


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o644)
    except OSError:
        if flags == os.O_RDONLY or not path.exists():
            raise
        # a directory that cannot be written to can be locked all the same
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
