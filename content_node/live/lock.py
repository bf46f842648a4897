"""Who may write to a shard's directory: one process at a time."""

import fcntl
import os
import weakref
from pathlib import Path

from winnow.errors import ArtefactError

LOCK = "lock"


class DirectoryLock:
    """A lock on a file, held until it is let go or the process ends, however that ends.

    Children do not inherit it.
    """

    def __init__(self, path: Path, shared: bool = False) -> None:
        """Takes the lock of a file, which is made if it has to be; `shared` with all who read.

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
        """Lets go; does no harm twice."""
        self._close()


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o644)
    except OSError:
        if flags == os.O_RDONLY or not path.exists():
            raise
        # a directory that cannot be written to can be held all the same
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
