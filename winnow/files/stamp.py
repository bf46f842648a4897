"""Whether a file is still the one that was read."""

from pathlib import Path

Stamp = tuple[int, int, int, int]
"""Differs when the file does: inode, moments of the last change of its content and of what else is
kept about it (a chmod changes only the latter), both in nanoseconds, and its bytes."""


def stamp(path: Path) -> Stamp | None:
    """Of the file that is there now, also behind links; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
