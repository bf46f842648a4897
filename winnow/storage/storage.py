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
    """A folder of files and folders. All methods block on files or on the network.

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

        Raises FileNotFoundError if the storage has no such file. Raises OSError, which names the
        local file, if that cannot be written.
        """

    def publish(
        self, folder: str, source: Path, names: Sequence[str], check: Callable[[Path | None], None]
    ) -> None:
        """Copies files of a local folder into a new folder. The last file makes it complete.

        `check` raises an error to refuse the written files; then nothing is published. Local
        storage calls it before publishing, with the directory of the files. Remote storage calls it
        with None once the files can be read.

        The storage must be locked, and `folder` must not be in its root. Hidden files beside the
        folder are removed, because killed publishers left them.
        """

    def directory(self, folder: str) -> Path | None:
        """Returns the local directory of a folder; None if it is missing or remote."""

    def locked(self) -> AbstractContextManager[None]:
        """Excludes other writers on this machine. Remote storage has no lock."""


def storage_error(location: object, purpose: str, reason: object) -> UnavailableError:
    """Returns the error for storage that cannot be used. Remote callers do not see the location."""
    error = UnavailableError(f"cannot use {location} for {purpose}: {reason}")
    return error.with_public(f"the store of {purpose} cannot be used")
