"""Files that stay open, so that later reads return the bytes that were verified.

A path may lead to another file at any time; a descriptor always leads to the same file. That file's
content changes only if it is overwritten in place, which changes its size or modification time.
"""

import contextlib
import hashlib
import io
import os
import stat
import weakref
from collections.abc import Sequence
from itertools import repeat
from operator import add
from pathlib import Path

from winnow.errors import ArtefactError


class OpenFile:
    """A regular file, open for reading until this object is garbage-collected. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Raises ArtefactError if there is no such file, or it cannot be opened."""
        self.path = path
        try:
            # nonblocking: opening a pipe without a writer would hang
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
            self._descriptor = os.open(path, flags)
        except (OSError, ValueError) as error:
            raise ArtefactError(f"cannot read {path}: {_reason(error)}") from error
        weakref.finalize(self, os.close, self._descriptor).atexit = False
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ArtefactError(f"cannot read {path}: it is not a regular file")
        self.size = status.st_size
        self._version = _version(status)

    @property
    def link(self) -> Path:
        """A path that leads to this file even if the original path leads to another one.

        Without /proc, this is the original path. So call `check` after opening the link.
        """
        link = Path(f"/proc/self/fd/{self._descriptor}")
        return link if link.exists() else self.path

    def reader(self) -> io.BufferedReader:
        """Returns a reader from the start of the file. Readers share one position: use one at a
        time.
        """
        reader = os.fdopen(os.dup(self._descriptor), "rb")
        reader.seek(0)
        return reader

    def read(self, count: int, start: int) -> bytes:
        """Reads `count` bytes from offset `start`; raises ArtefactError if that fails."""
        try:
            data = os.pread(self._descriptor, count, start)
        except OSError as error:
            raise ArtefactError(f"cannot read {self.path}: {_reason(error)}") from error
        if len(data) != count:
            raise ArtefactError(f"{self.path} ends before byte {start + count}: {_COPY_AGAIN}")
        return data

    def read_each(self, counts: Sequence[int], starts: Sequence[int]) -> bytes:
        """Reads `counts[i]` bytes from offset `starts[i]` for each i, and joins them.

        Raises ArtefactError if that fails.
        """
        try:
            data = b"".join(map(os.pread, repeat(self._descriptor), counts, starts))
        except OSError as error:
            raise ArtefactError(f"cannot read {self.path}: {_reason(error)}") from error
        if len(data) != sum(counts):
            end = max(map(add, counts, starts))
            raise ArtefactError(f"{self.path} ends before byte {end}: {_COPY_AGAIN}")
        return data

    def verify(self, sha256: str, size: int, advice: str = ", copy it again") -> None:
        """Verifies size and checksum. `advice` follows "is damaged" in the error message.

        Raises ArtefactError if one of them differs, or the file cannot be read.
        """
        if self.size != size:
            raise self._damaged(f"it has {self.size} bytes, but its manifest says {size}", advice)
        try:
            with self.reader() as reader:
                actual = hashlib.file_digest(reader, "sha256").hexdigest()
        except OSError as error:
            raise ArtefactError(f"cannot read {self.path}: {_reason(error)}") from error
        if actual != sha256:
            raise self._damaged(f"its SHA-256 is {actual}, but its manifest says {sha256}", advice)

    def _damaged(self, reason: str, advice: str) -> ArtefactError:
        return ArtefactError(f"{self.path} is damaged{advice}: {reason}")

    def check(self) -> None:
        """Raises ArtefactError if the file was written to since it was opened."""
        if self.is_altered:
            raise ArtefactError(f"{self.path} was written to after it was verified: {_COPY_AGAIN}")

    @property
    def is_altered(self) -> bool:
        """Whether the file was written to since it was opened."""
        return _version(os.fstat(self._descriptor)) != self._version

    @property
    def has_its_path(self) -> bool:
        """Whether the path still leads to this file."""
        with contextlib.suppress(OSError):
            return os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        return False


_COPY_AGAIN = "copy it again, and start the node again"


def _version(status: os.stat_result) -> tuple[int, int]:
    """Returns values that change if the file is written, but not if it is renamed or deleted."""
    return status.st_size, status.st_mtime_ns


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, expected: str, size: int) -> None:
    """Verifies size and SHA-256 of a file.

    Raises ArtefactError if one of them differs, or the file is missing or cannot be read.
    """
    OpenFile(path).verify(expected, size)
