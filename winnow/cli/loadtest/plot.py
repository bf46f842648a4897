"""A picture of latency under load. Needs the `plots` extra."""

from collections.abc import Sequence
from pathlib import Path

from winnow.cli.drawing import pyplot
from winnow.cli.loadtest.loops import LoadResult
from winnow.cli.outputs import writing


def plot(loads: Sequence[LoadResult], path: Path) -> None:
    """Draws p50, p95 and p99 against questions a second into `path` (.png or .svg).

    Raises:
        WinnowError: the file cannot be written.

    """
    drawing = pyplot()
    figure, axes = drawing.subplots(figsize=(7, 4.5), layout="constrained")
    for name, style in (("p50_ms", "-o"), ("p95_ms", "--o"), ("p99_ms", ":o")):
        axes.plot(
            [load.per_second for load in loads],
            [getattr(load, name) for load in loads],
            style,
            label=name.removesuffix("_ms"),
        )
    for load in loads:
        label = f"{load.offered:g} {'clients' if load.kind == 'closed' else '/s offered'}"
        axes.annotate(
            label,
            (load.per_second, load.p50_ms),
            fontsize=7,
            xytext=(4, -9),
            textcoords="offset points",
        )
    axes.set(xlabel="questions answered per second", ylabel="latency, ms", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend()
    with writing(path):
        figure.savefig(path, dpi=150)
    drawing.close(figure)
