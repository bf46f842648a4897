"""A picture of the tails: what each course does to p50 and p99."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.simulation.tails import Point
from winnow.cli.drawing import pyplot
from winnow.cli.outputs import writing

_COLOURS = ("tab:red", "tab:blue")


def plot(points: Sequence[Point], path: Path) -> None:
    """Draws a picture for each group of courses into `path` (.png or .svg).

    Raises:
        WinnowError: the file cannot be written.

    """
    drawing = pyplot()
    names = list(dict.fromkeys(each.course.picture for each in points))
    figure, axes = drawing.subplots(2, 2, figsize=(10, 7), layout="constrained", sharex=True)
    for own, name in zip(axes.flat, names, strict=True):
        _draw(own, name, [each for each in points if each.course.picture == name])
    with writing(path):
        figure.savefig(path, dpi=100)
    drawing.close(figure)


def _draw(axes: Any, name: str, points: Sequence[Point]) -> None:
    courses = list(dict.fromkeys(each.course.name for each in points))
    for course, colour in zip(courses, _COLOURS, strict=True):
        own = [each for each in points if each.course.name == course]
        shards = [each.shards for each in own]
        axes.plot(shards, [each.p99 for each in own], "-o", color=colour, label=f"p99, {course}")
        axes.plot(shards, [each.p50 for each in own], ":", color=colour, label="p50")
    axes.set(title=name, xscale="log", yscale="log", xlabel="shards", ylabel="ms")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=7)
