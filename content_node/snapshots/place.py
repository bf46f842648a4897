"""Where snapshots lie: the one interface of a directory here and a folder of a remote file system.

PLACE/snapshots/NAME.json     the manifest of a snapshot, written last
PLACE/files/SHA-256           files of all snapshots, each under its checksum, once
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

SNAPSHOTS, FILES = "snapshots", "files"

Advance = Callable[[int], None]
"""Told bytes as they are copied."""


class Place(Protocol):
    """A folder of files. All methods wait for files or for the network.

    Every method raises UnavailableError if the place cannot be reached or written.
    """

    @property
    def name(self) -> str:
        """Its path, or its URL without user and password."""

    def sizes(self, folder: str) -> dict[str, int]:
        """The files in a folder, with their bytes; none if there is no such folder."""

    def read(self, folder: str, file: str) -> bytes | None:
        """A small file; None if there is none."""

    def write(self, content: bytes, folder: str, file: str) -> None:
        """Writes a small file, whole or not at all."""

    def put(self, source: Path, advance: Advance, folder: str, file: str) -> None:
        """Copies a local file here, whole or not at all."""

    def get(self, target: Path, advance: Advance, folder: str, file: str) -> None:
        """Copies a file to a local one.

        Raises:
            ArtefactError: there is no such file.
            OSError: the local one cannot be written.

        """
