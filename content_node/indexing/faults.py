"""Errors of the operating system and of SQLite as one line each that says what to do."""

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from winnow.errors import ArtefactError

_ROOM = "make room, or choose another --out"
_ALLOWED = "choose an --out that you may write to"
_BY_ERRNO = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.EIO: "check the disk",
    errno.EACCES: _ALLOWED,
    errno.EPERM: _ALLOWED,
    errno.EROFS: _ALLOWED,
    errno.ENOLCK: "choose an --out on a file system that can lock files",
}
_PRIMARY = 0xFF
"""The bits of an extended result code that hold the primary code."""


@contextlib.contextmanager
def named_faults(source: Path, staging: Path) -> Iterator[None]:
    """Turns errors of the operating system and of SQLite into ArtefactErrors."""
    try:
        yield
    except OSError as error:
        raise ArtefactError(_of_system(error, source, staging.parent)) from error
    except sqlite3.Error as error:
        raise ArtefactError(_of_database(error, staging)) from error


def _of_system(error: OSError, source: Path, directory: Path) -> str:
    path = Path(str(error.filename or directory))
    # an error of numpy names the missing bytes and no reason
    reason = error.strerror or f"{error}: is the disk full?"
    if path.is_relative_to(source):
        return f"cannot read {path}: {reason}"
    return (
        f"cannot write {path}: {reason}: {_BY_ERRNO.get(error.errno or 0, 'choose another --out')}"
    )


def _of_database(error: sqlite3.Error, staging: Path) -> str:
    advice = {
        sqlite3.SQLITE_FULL: _ROOM,
        sqlite3.SQLITE_IOERR: _ROOM,
        sqlite3.SQLITE_READONLY: _ALLOWED,
        sqlite3.SQLITE_CANTOPEN: _ALLOWED,
        sqlite3.SQLITE_PERM: _ALLOWED,
        sqlite3.SQLITE_BUSY: "end the program that has it open",
        sqlite3.SQLITE_LOCKED: "end the program that has it open",
    }
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    again = f"remove {staging.parent} to start again"
    return f"cannot use {staging}: {error}: {advice.get(code, again)}"
