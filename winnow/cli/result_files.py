"""Files that a command writes after long work. A file that cannot be written is found before."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from winnow.errors import WinnowError


@contextlib.contextmanager
def reserved(*paths: Path | None) -> Iterator[None]:
    """Opens every path for writing before the work begins; None is left out.

    A file keeps its content until it is written. If the work fails, a file that was made here and
    is still empty is removed. Raises WinnowError if a path cannot be written.
    """
    made: list[Path] = []
    try:
        made.extend(path for path in filter(None, paths) if _opened(path))
        yield
    except BaseException:
        for path in made:
            with contextlib.suppress(OSError):
                if path.stat().st_size == 0:
                    path.unlink()
        raise


@contextlib.contextmanager
def directory(path: Path) -> Iterator[Path]:
    """Makes a directory; removes it if the work fails and leaves it empty.

    Raises WinnowError if it cannot be made.
    """
    missing = not path.exists()
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    try:
        yield path
    except BaseException:
        if missing:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns an OSError while `path` is written into a WinnowError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise WinnowError(f"cannot write {path}: {reason}: choose another place") from error


def _opened(path: Path) -> bool:
    """Opens a file for writing; returns whether that made the file."""
    with writing(path):
        missing = not path.exists()
        if missing or path.is_file() or path.is_dir():  # opening a pipe would wait for its reader
            path.open("ab").close()
        return missing
