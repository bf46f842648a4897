"""Draws charts with matplotlib, which is an optional dependency."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer

from winnow.errors import UnavailableError, WinnowError
from winnow.files.result_files import convert_write_errors
from winnow.packaged import extra

_SUFFIXES = (".png", ".svg")


def check_picture_path(path: Path | None) -> None:
    """Raises WinnowError if `path` has a wrong suffix, or matplotlib is missing.

    Does nothing if `path` is None.
    """
    if path is None:
        return
    if path.suffix.lower() not in _SUFFIXES:
        raise WinnowError(f"cannot draw {path}: the name must end in {' or '.join(_SUFFIXES)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UnavailableError(f"drawing needs matplotlib: {extra('plots')}")


@contextlib.contextmanager
def figure(path: Path, *grid: int, **options: Any) -> Iterator[Any]:
    """Yields the axes of a new figure, and saves the figure to `path` after the block.

    `grid` and `options` are passed to matplotlib's `subplots`. Call `check_picture_path` first.
    Raises WinnowError if the file cannot be written.
    """
    import matplotlib as mpl  # noqa: PLC0415 (an extra)

    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    drawing, axes = pyplot.subplots(*grid, **options)
    yield axes
    with convert_write_errors(path):
        drawing.savefig(path, dpi=150)
    pyplot.close(drawing)


@contextlib.contextmanager
def draw_after(picture: Path | None, draw: Callable[[Path], None]) -> Iterator[None]:
    """Draws a picture after the block, if `picture` is a path.

    The block prints results. The picture is drawn even if printing fails, for example to a closed
    pipe.
    """
    try:
        yield
    finally:
        if picture is not None:
            draw(picture)
            typer.echo(f"wrote {picture}", err=True)
