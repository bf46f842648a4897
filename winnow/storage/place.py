"""The one interface of a directory of this machine and a folder of a remote file system."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from winnow.errors import UnavailableError

Advance = Callable[[int], None]
"""Called with the number of bytes that were copied since the call before."""


def ignore(_count: int) -> None:
    """An `Advance` that reports nothing."""


class Place(Protocol):
    """A folder of files, some of them in folders. All methods wait for files or for the network.

    Paths are relative, with slashes. Names that begin with a dot are not listed. Every method
    raises UnavailableError if the place cannot be reached or written.
    """

    @property
    def name(self) -> str:
        """The path, or the URL without user and password."""

    def read(self, path: str) -> bytes | None:
        """The content of a small file; None if there is no such file. Raises ArtefactError if
        something else than a regular file has this path.
        """

    def sizes(self, folder: str = "") -> dict[str, int]:
        """The files in a folder, with their bytes; none if there is no such folder."""

    def folders(self, folder: str = "") -> list[str]:
        """Names of the folders in a folder; none if there is no such folder."""

    def write(self, path: str, content: bytes) -> None:
        """Writes a small file, whole or not at all; readers see the old content or the new one."""

    def upload(self, path: str, source: Path, advance: Advance = ignore) -> None:
        """Copies a local file to the place, whole or not at all."""

    def download(self, path: str, target: Path, advance: Advance = ignore) -> None:
        """Copies a file of the place to a local one. What fails leaves a part of it there. Raises
        FileNotFoundError if the place has no such file. Raises OSError if the local file cannot be
        written; the error names it.
        """

    def publish(
        self, folder: str, source: Path, names: Sequence[str], check: Callable[[Path | None], None]
    ) -> None:
        """Copies files of a local folder into a new folder, which is complete once it has the last.

        `check` raises if what was written is bad; then nothing is published. A local place gives it
        the directory with the files before it publishes them. A remote place gives it None once
        they can be read. Hidden files beside the folder are removed: publishers that were killed
        have left them. So the place must be locked, and the folder must not lie in its root.
        """

    def directory(self, folder: str) -> Path | None:
        """A folder's directory on this machine; None if there is none, or the place is remote."""

    def locked(self) -> AbstractContextManager[None]:
        """Keeps other writers out, on this machine; a remote place has no lock."""


def unusable(place: object, purpose: str, reason: object) -> UnavailableError:
    """The error of a place that cannot be used. Callers at a distance are not told where it is."""
    error = UnavailableError(f"cannot use {place} for {purpose}: {reason}")
    return error.with_public(f"the store of {purpose} cannot be used")
