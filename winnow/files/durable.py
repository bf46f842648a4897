"""Writes files that survive a power loss: syncs a temporary file, then renames it."""

import os
import tempfile
from pathlib import Path


def write_durably(path: Path, content: bytes) -> None:
    """Replaces `path` atomically: readers see the old content or the new content.

    Raises OSError if the file cannot be written; `path` then keeps its old content.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, 0o644)  # servers run by other users must be able to read it
            os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def create_private(path: Path, content: bytes) -> None:
    """Creates a file atomically, with permissions for its owner only.

    Raises FileExistsError if `path` exists, and does not change it. Raises OSError if the file
    cannot be written.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.link(name, path)  # unlike a rename, a link replaces no file
    finally:
        Path(name).unlink()
    sync_directory(path.parent)


def sync_file(path: Path) -> None:
    """Makes the content of a file survive a power loss."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """Makes renames and new files in `directory` survive a power loss."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_directories(directory: Path) -> None:
    """Creates a directory and the missing ones above it; their names survive a power loss."""
    if directory.is_dir():
        return
    create_directories(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_directory(directory.parent)
