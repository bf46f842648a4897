"""File locks between processes."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from winnow.errors import UnavailableError, WinnowError


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


@contextlib.contextmanager
def locked_directory(path: Path) -> Iterator[None]:
    """Waits for the lock of the directory of a file, and holds it while the file is changed.

    The file itself cannot be locked, because each change replaces it. Raises WinnowError if the
    directory cannot be opened.
    """
    try:
        directory = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise WinnowError(
            f"cannot open {path.parent}, the directory of {path.name}: {error.strerror}"
        ) from error
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)
