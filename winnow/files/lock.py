"""Locks of files, which one process at a time may hold."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from winnow.errors import UnavailableError


@contextlib.contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Holds the lock of the file `path`, which the kernel releases when the process ends. Raises
    UnavailableError if another process holds the lock; `busy` is the message. Raises OSError if the
    file cannot be created.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UnavailableError(busy) from error
        yield
    finally:
        os.close(descriptor)
