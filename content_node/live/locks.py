"""Locks for the log of a shard: one between processes, one between two threads."""

import fcntl
import os
import threading
import weakref
from pathlib import Path

from winnow.errors import ArtefactError

LOCK_FILE = "lock"
"""The name of the lock file in the directory of the log."""


class DirectoryLock:
    """A lock on a file, held until it is released or the process ends, even by a kill.

    A program that this process starts does not inherit it; a forked process shares it.
    """

    def __init__(self, path: Path, shared: bool = False) -> None:
        """Locks a file; creates a missing file unless `shared`, the mode of readers.

        Raises:
            ArtefactError: another process holds the lock.
            OSError: the file cannot be created or opened.

        """
        flags = os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT
        self._descriptor = _open_lock_file(path, flags)
        self._close = weakref.finalize(self, os.close, self._descriptor)
        try:
            fcntl.flock(
                self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
            )
        except BlockingIOError as error:
            self.release()
            raise ArtefactError(
                f"{path} is held by another node: only one node may open a shard that takes "
                "writes; use that node, stop it, or open a copy of the shard"
            ) from error

    def release(self) -> None:
        """Releases the lock. A second call does nothing."""
        self._close()


class AlternatingLock:
    """A fair lock for two threads: on release, the waiting thread gets it. Use it with `with`.

    With a plain lock, a thread that releases it and takes it again would starve the other thread.
    """

    def __init__(self) -> None:
        self._queue, self._held = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        with self._queue:
            self._held.acquire()

    def __exit__(self, *_: object) -> None:
        self._held.release()


def _open_lock_file(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o644)
    except OSError:
        if flags == os.O_RDONLY or not path.exists():
            raise
        # a lock needs no permission to write
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
