"""Converts errors of the operating system and of SQLite to one-line errors with advice."""

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from winnow.content_node.live.failures import primary_code
from winnow.errors import ArtefactError

_MAKE_ROOM = "make room, or choose another directory"
_CHOOSE_WRITABLE = "choose a directory that you may write to"
_CLOSE_OTHERS = "end the program that has it open"
_ADVICE_BY_ERRNO = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: _MAKE_ROOM,
    errno.EIO: "check the disk",
    errno.EACCES: _CHOOSE_WRITABLE,
    errno.EPERM: _CHOOSE_WRITABLE,
    errno.EROFS: _CHOOSE_WRITABLE,
    errno.ENOLCK: "choose a directory on a file system that can lock files",
}
_ADVICE_BY_SQLITE_CODE = {
    sqlite3.SQLITE_FULL: _MAKE_ROOM,
    sqlite3.SQLITE_IOERR: _MAKE_ROOM,
    sqlite3.SQLITE_READONLY: _CHOOSE_WRITABLE,
    sqlite3.SQLITE_CANTOPEN: _CHOOSE_WRITABLE,
    sqlite3.SQLITE_PERM: _CHOOSE_WRITABLE,
    sqlite3.SQLITE_BUSY: _CLOSE_OTHERS,
    sqlite3.SQLITE_LOCKED: _CLOSE_OTHERS,
}


@contextlib.contextmanager
def convert_errors(source: Path, staging: Path) -> Iterator[None]:
    """Converts errors of the operating system and of SQLite to ArtefactErrors."""
    try:
        yield
    except OSError as error:
        raise ArtefactError(_describe_os_error(error, source, staging.parent)) from error
    except sqlite3.Error as error:
        remove = f"remove {staging.parent} to start again"
        advice = _ADVICE_BY_SQLITE_CODE.get(primary_code(error), remove)
        raise ArtefactError(f"cannot use {staging}: {error}: {advice}") from error


def _describe_os_error(error: OSError, source: Path, directory: Path) -> str:
    path = Path(str(error.filename or directory))
    # errors of numpy give the missing bytes, but no reason
    reason = error.strerror or f"{error}: is the disk full?"
    if path.is_relative_to(source):
        return f"cannot read {path}: {reason}"
    advice = _ADVICE_BY_ERRNO.get(error.errno or 0, "choose another directory")
    return f"cannot write {path}: {reason}: {advice}"
