"""Pictures, drawn with matplotlib, which is an extra."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer

from winnow.cli.result_files import writing
from winnow.errors import UnavailableError, WinnowError
from winnow.packaged import extra

_KINDS = (".png", ".svg")


def check_drawable(path: Path | None) -> None:
    """Raises a WinnowError if a picture could not be drawn into `path`, if there is one."""
    if path is None:
        return
    if path.suffix.lower() not in _KINDS:
        raise WinnowError(f"cannot draw {path}: name it {' or '.join(_KINDS)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UnavailableError(f"drawing needs matplotlib: {extra('plots')}")


@contextlib.contextmanager
def figure(path: Path, *places: int, **options: Any) -> Iterator[Any]:
    """Gives the axes of a new figure, and saves the figure to `path` afterwards.

    The arguments are those of matplotlib's `subplots`. Call `check_drawable` before. Raises
    WinnowError if the file cannot be written.
    """
    import matplotlib as mpl  # noqa: PLC0415 (an extra)

    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    made, axes = pyplot.subplots(*places, **options)
    yield axes
    with writing(path):
        made.savefig(path, dpi=150)
    pyplot.close(made)


@contextlib.contextmanager
def drawn_after(picture: Path | None, draw: Callable[[Path], None]) -> Iterator[None]:
    """Draws a picture, if there is a path for it, after the block that prints.

    The picture is drawn even if the reader of the output has gone.
    """
    try:
        yield
    finally:
        if picture is not None:
            draw(picture)
            typer.echo(f"drawn: {picture}", err=True)
