"""The errors that callers get when the log cannot be written. Pure.

A failed write has changed nothing, and the node keeps serving.
"""

import errno
import sqlite3
from pathlib import Path

from winnow.errors import NotWritableError, OverloadedError, WinnowError

_ROOM_AFTER = 5.0
"""Seconds until a full disk may have room again."""
_FREE_AFTER = 0.2
"""Seconds until a locked database may be free."""
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PRIMARY = 0xFF
"""The bits of an extended result code that hold the primary code."""
_READ_ONLY = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_CANTOPEN,
)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def failure(error: sqlite3.Error | OSError, path: Path) -> WinnowError:
    """The domain error for an error of writing `path`."""
    if isinstance(error, OSError):
        return _of_system(error, path)
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    if code in _READ_ONLY:
        return _read_only(path, error)
    if code in _DAMAGED:
        return NotWritableError(
            f"{path} is damaged ({error}): start the node again, which says what can be done"
        )
    if code in _BUSY:
        return OverloadedError(f"{path} is locked by another process ({error})", _FREE_AFTER)
    if code == sqlite3.SQLITE_FULL:
        return _full(path, error)
    return OverloadedError(f"{path} cannot be written to: {error}", _ROOM_AFTER)


def _of_system(error: OSError, path: Path) -> WinnowError:
    if error.errno in _FORBIDDEN:
        return _read_only(path, error)
    if error.errno in _FULL:
        return _full(path, error)
    return OverloadedError(f"{path} cannot be written to: {error}", _ROOM_AFTER)


def _read_only(path: Path, error: Exception) -> NotWritableError:
    return NotWritableError(
        f"{path} cannot be written to ({error}): give the node a directory that it may write to"
    )


def _full(path: Path, error: Exception) -> OverloadedError:
    return OverloadedError(f"there is no room for {path} ({error}): make some", _ROOM_AFTER)
