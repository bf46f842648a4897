"""Checks that result files can be written before a command begins long work."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from winnow.errors import WinnowError


@contextlib.contextmanager
def reserve_files(*paths: Path | None) -> Iterator[None]:
    """Opens every path for writing before the block; skips None. Files keep their content.

    Raises WinnowError if a path cannot be written. If the block fails, files that were created here
    and are still empty are removed.
    """
    created: list[Path] = []
    try:
        created.extend(path for path in filter(None, paths) if _create(path))
        yield
    except BaseException:
        for path in created:
            with contextlib.suppress(OSError):
                if path.stat().st_size == 0:
                    path.unlink()
        raise


@contextlib.contextmanager
def created_directory(path: Path) -> Iterator[Path]:
    """Creates a directory, and removes it again if the block fails and the directory is empty.

    Raises WinnowError if the directory cannot be created.
    """
    missing = not path.exists()
    with convert_write_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    try:
        yield path
    except BaseException:
        if missing:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


@contextlib.contextmanager
def convert_write_errors(path: Path) -> Iterator[None]:
    """Converts an OSError of the block, which writes to `path`, to a WinnowError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise WinnowError(f"cannot write {path}: {reason}: choose another path") from error


def _create(path: Path) -> bool:
    """Opens a file for appending; returns whether this created the file."""
    with convert_write_errors(path):
        missing = not path.exists()
        if missing or path.is_file() or path.is_dir():  # opening a pipe would wait for its reader
            path.open("ab").close()
        return missing
