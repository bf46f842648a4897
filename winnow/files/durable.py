"""Writing files that survive a power loss: synced first, and then put in place by a rename."""

import os
import tempfile
from pathlib import Path


def write_durably(path: Path, content: bytes) -> None:
    """Replaces `path` at once: readers see the old content or the new one, and never a part. Raises
    OSError if it cannot be written; what was there before still is.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    aside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, 0o644)  # other users' servers read it, too
            os.fsync(descriptor)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def create_private(path: Path, content: bytes) -> None:
    """Makes a file that only its owner reads. It appears whole or not at all. Raises
    FileExistsError if something is there already; it stays as it is. Raises OSError if it cannot be
    written.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.link(name, path)  # unlike a rename, it replaces nothing
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
