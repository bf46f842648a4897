"""Checksums of files."""

import hashlib
from pathlib import Path

from winnow.errors import ArtefactError


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, expected: str, size: int) -> None:
    """Checks a file against what a manifest says.

    Raises:
        ArtefactError: it is missing, cannot be read, or has another size or checksum.

    """
    try:
        actual_size = path.stat().st_size
        if actual_size != size:
            raise _damaged(path, f"it has {actual_size} bytes, its manifest says {size}")
        actual = sha256(path)
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror}") from error
    if actual != expected:
        raise _damaged(path, f"its SHA-256 is {actual}, its manifest says {expected}")


def _damaged(path: Path, how: str) -> ArtefactError:
    return ArtefactError(f"{path} is damaged, copy it again: {how}")
