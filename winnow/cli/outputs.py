"""Files that a command writes after long work. That they cannot be written is found out before."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from winnow.errors import WinnowError


@contextlib.contextmanager
def reserved(*paths: Path | None) -> Iterator[None]:
    """Opens every path for writing, so that it can be written later; None is left out.

    What a file held stays until it is written. A file that is still empty when the work fails is
    removed if it was not there before.

    Raises:
        WinnowError: a path cannot be written.

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
    """Makes a directory, and removes it again if the work fails and leaves it empty.

    Raises:
        WinnowError: it cannot be made.

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
    """Turns what the system says while `path` is written into a WinnowError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise WinnowError(f"cannot write {path}: {reason}: choose another place") from error


def _opened(path: Path) -> bool:
    """Whether the file was made by opening it."""
    with writing(path):
        missing = not path.exists()
        if missing or path.is_file() or path.is_dir():  # opening a pipe would wait for its reader
            path.open("ab").close()
        return missing
