"""Converts errors of writing the log to the errors that callers get. Pure.

A failed write has changed nothing, and the node keeps serving.
"""

import errno
import sqlite3
from pathlib import Path

from winnow.errors import NotWritableError, OverloadedError, WinnowError

_DISK_RETRY_AFTER = 5.0
"""Seconds after which a caller retries when the disk was full or failed."""
_LOCK_RETRY_AFTER = 0.2
"""Seconds after which a caller retries when the database was locked."""
_READ_ONLY_ERRNOS = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR)
_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PRIMARY_CODE_MASK = 0xFF
_READ_ONLY_CODES = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_CANTOPEN,
)
DAMAGED_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def primary_code(error: sqlite3.Error) -> int:
    """Returns SQLite's primary result code of an error; 0 if it has none."""
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE_MASK


def write_failure(error: sqlite3.Error | OSError, path: Path) -> WinnowError:
    """Returns the error that callers get after `error` of writing `path`."""
    os_code = error.errno if isinstance(error, OSError) else None
    sqlite_code = primary_code(error) if isinstance(error, sqlite3.Error) else None
    if os_code in _READ_ONLY_ERRNOS or sqlite_code in _READ_ONLY_CODES:
        return NotWritableError(
            f"{path} cannot be written to ({error}): give the node a directory that it may write to"
        )
    if sqlite_code in DAMAGED_CODES:
        return damaged_log(path, error)
    if sqlite_code in _BUSY_CODES:
        return OverloadedError(f"{path} is locked by another process ({error})", _LOCK_RETRY_AFTER)
    if os_code in _FULL_ERRNOS or sqlite_code == sqlite3.SQLITE_FULL:
        return OverloadedError(
            f"there is no room for {path} ({error}): make room on the disk", _DISK_RETRY_AFTER
        )
    return OverloadedError(f"{path} cannot be written to: {error}", _DISK_RETRY_AFTER)


def damaged_log(path: Path, error: Exception) -> NotWritableError:
    """Returns the error for a log that turned out damaged while the node was serving."""
    return NotWritableError(
        f"{path} is damaged ({error}): restart the node, which then reports what to do"
    )
