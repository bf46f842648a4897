"""Checksums of files."""

import hashlib
from pathlib import Path

from winnow.files.opened import OpenFile


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, expected: str, size: int) -> None:
    """Checks a file against what a manifest says.

    Raises:
        ArtefactError: it is missing, cannot be read, or has another size or checksum.

    """
    OpenFile(path).verify(expected, size)
