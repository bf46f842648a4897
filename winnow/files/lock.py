"""File locks between processes."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from winnow.errors import UnavailableError


@contextlib.contextmanager
def locked(path: Path, busy_message: str) -> Iterator[None]:
    """Holds the lock of the file `path`. The kernel releases it if the process ends.

    Raises UnavailableError with `busy_message` if another process holds the lock. Raises
    OSError if the file cannot be created.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UnavailableError(busy_message) from error
        yield
    finally:
        os.close(descriptor)
