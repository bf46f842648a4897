"""The interface that local and remote storage share."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from winnow.errors import UnavailableError

OnCopied = Callable[[int], None]
"""Called with the number of bytes copied since the previous call."""


def ignore_copied(_count: int) -> None:
    """An `OnCopied` that reports nothing."""


class Storage(Protocol):
    """A root folder with files and subfolders. All methods block on files or the network.

    Paths are relative, with slashes. Hidden names, which begin with a dot, are not listed. Every
    method raises UnavailableError if the storage cannot be reached or written.
    """

    @property
    def name(self) -> str:
        """The path, or the URL without user and password."""

    def read(self, path: str) -> bytes | None:
        """Reads a small file; returns None if it does not exist.

        Raises ArtefactError if the path is not a regular file.
        """

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Returns the size in bytes of each file in a folder; empty if the folder is missing."""

    def folders(self, folder: str = "") -> list[str]:
        """Returns the names of a folder's subfolders; empty if the folder is missing."""

    def write(self, path: str, content: bytes) -> None:
        """Writes a small file atomically."""

    def upload(self, path: str, source: Path, on_copied: OnCopied = ignore_copied) -> None:
        """Copies a local file into the storage, atomically."""

    def download(self, path: str, target: Path, on_copied: OnCopied = ignore_copied) -> None:
        """Copies a stored file to a local file. A failed copy leaves a partial file.

        Raises FileNotFoundError if the storage has no such file. Raises OSError with the name of
        the local file if that file cannot be written.
        """

    def remove(self, path: str) -> None:
        """Removes a file; does nothing if it does not exist."""

    def publish(
        self, folder: str, source: Path, names: Sequence[str], check: Callable[[Path | None], None]
    ) -> None:
        """Copies the files `names` of a local folder into a new folder. The last file completes it.

        `check` may raise an error, and then nothing is published. Local storage calls `check`
        before publishing, with the directory of the written files. Remote storage calls it with
        None when the files are readable.

        The caller must hold the lock. `folder` must be a subfolder of another folder, in which all
        hidden files are removed as leftovers of killed publishers.
        """

    def directory(self, folder: str) -> Path | None:
        """Returns the local directory of a folder; None if the folder is missing or remote."""

    def locked(self) -> AbstractContextManager[None]:
        """Holds the lock against other writers on this machine. Remote storage has no lock."""

    def lock_file(self, path: str) -> AbstractContextManager[Callable[[], None]]:
        """Holds a lock against other writers of one file, on all machines that use its URL.

        Yields a function to be called before the file is written. It raises UnavailableError if
        another writer took the lock, because this one seemed to be dead. A local file is locked on
        this machine only. If another process holds its lock too long, raises UnavailableError.
        """


def storage_error(location: object, purpose: str, reason: object) -> UnavailableError:
    """Returns the error for unusable storage, with a public message that omits the location."""
    error = UnavailableError(f"cannot use {location} for {purpose}: {reason}")
    return error.with_public(f"the store of {purpose} cannot be used")
