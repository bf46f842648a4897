"""Files that cache computed values, and that can be computed again."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from rich.console import Console

from winnow.files.durable import sync_directory, sync_file

Value = TypeVar("Value")
_DAMAGE = (ValueError, KeyError, EOFError, zipfile.BadZipFile)
"""Errors of NumPy and of readers if a file is truncated or altered."""


def read_cached(path: Path, read: Callable[[BinaryIO], Value]) -> Value | None:
    """Returns what `read` makes of a file; None if the file is missing or damaged.

    Warns about a damaged file. The caller computes its values again, and replaces the file.
    """
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return read(file)
    except _DAMAGE as error:
        console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
        console.print(f"{path} is damaged, so its values are computed again: {error}")
        return None


def write_cached(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Replaces a file by what `write` writes. An interruption or a power loss keeps the old file.

    Creates the directory if it is missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        write(file)
    replace_durably(partial, path)


def replace_durably(partial: Path, path: Path) -> None:
    """Renames a complete file to `path`. A power loss leaves the old or the new content."""
    sync_file(partial)
    partial.replace(path)
    sync_directory(path.parent)
