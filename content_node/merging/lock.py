"""One merge of a shard at a time, also where a node that was killed left its merge running."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from winnow.errors import UnavailableError


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock in the file `path`; the kernel frees it when the process ends, however.

    Raises:
        UnavailableError: another process holds it.
        OSError: the file cannot be made.

    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UnavailableError(
                f"another process is merging this shard ({path} is locked): wait for it"
            ) from error
        yield
    finally:
        os.close(descriptor)
