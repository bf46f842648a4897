"""Files that are opened once, so that the verified bytes are the ones read afterwards.

A name can lead to another file at any moment, a descriptor cannot. Only a file that is written over
in place changes under its descriptor: its size and time of change show it.
"""

import contextlib
import hashlib
import io
import os
import stat
import weakref
from pathlib import Path

from winnow.errors import ArtefactError


class OpenFile:
    """A regular file, open for reading until nobody holds it any more. Safe to use from threads."""

    def __init__(self, path: Path) -> None:
        """Raises ArtefactError if there is no such file, or it cannot be opened."""
        self.path = path
        try:
            # a pipe without a writer would be waited for
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
            self._descriptor = os.open(path, flags)
        except (OSError, ValueError) as error:
            raise ArtefactError(f"cannot read {path}: {_reason(error)}") from error
        weakref.finalize(self, os.close, self._descriptor).atexit = False
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ArtefactError(f"cannot read {path}: it is not a regular file")
        self.size = found.st_size
        self._opened = _content(found)

    @property
    def link(self) -> Path:
        """A path that opens this very file, even if its name leads to another one by now.

        Where there is no /proc, it is the name; call `check` afterwards.
        """
        link = Path(f"/proc/self/fd/{self._descriptor}")
        return link if link.exists() else self.path

    def reader(self) -> io.BufferedReader:
        """The file from its beginning. Two readers share one position: use one at a time."""
        reader = os.fdopen(os.dup(self._descriptor), "rb")
        reader.seek(0)
        return reader

    def read(self, count: int, start: int) -> bytes:
        """`count` bytes from `start` on. Raises ArtefactError if they are not there any more, or
        cannot be read.
        """
        try:
            data = os.pread(self._descriptor, count, start)
        except OSError as error:
            raise ArtefactError(f"cannot read {self.path}: {_reason(error)}") from error
        if len(data) != count:
            raise ArtefactError(f"{self.path} ends before byte {start + count}: {_AGAIN}")
        return data

    def verify(self, expected: str, size: int, mend: str = ", copy it again") -> None:
        """Checks the bytes against a manifest; `mend` is the advice in the error.

        Raises ArtefactError if the size or the checksum differs, or the bytes cannot be read.
        """
        if self.size != size:
            raise self._damaged(f"it has {self.size} bytes, its manifest says {size}", mend)
        try:
            with self.reader() as reader:
                actual = hashlib.file_digest(reader, "sha256").hexdigest()
        except OSError as error:
            raise ArtefactError(f"cannot read {self.path}: {_reason(error)}") from error
        if actual != expected:
            raise self._damaged(f"its SHA-256 is {actual}, its manifest says {expected}", mend)

    def _damaged(self, how: str, mend: str) -> ArtefactError:
        return ArtefactError(f"{self.path} is damaged{mend}: {how}")

    def check(self) -> None:
        """Raises ArtefactError if the file was written to since it was opened."""
        if self.altered:
            raise ArtefactError(f"{self.path} was written to after it was verified: {_AGAIN}")

    @property
    def altered(self) -> bool:
        """Whether the file was written to since it was opened."""
        return _content(os.fstat(self._descriptor)) != self._opened

    @property
    def named(self) -> bool:
        """Whether its name still leads to it."""
        with contextlib.suppress(OSError):
            return os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        return False


_AGAIN = "copy it again, and start the node again"


def _content(found: os.stat_result) -> tuple[int, int]:
    """The values that change when a file is written to, but not when it is renamed or deleted."""
    return found.st_size, found.st_mtime_ns


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, expected: str, size: int) -> None:
    """Checks a file against what a manifest says. Raises ArtefactError if it is missing, cannot be
    read, or has another size or checksum.
    """
    OpenFile(path).verify(expected, size)
