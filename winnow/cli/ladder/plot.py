"""A picture of the ladder. Needs the `plots` extra."""

from collections.abc import Sequence
from pathlib import Path

from winnow.cli.drawing import pyplot
from winnow.cli.ladder.figures import Rung
from winnow.cli.outputs import writing


def plot(rungs: Sequence[Rung], path: Path) -> None:
    """Draws predictions a second, with the spread of the rounds, into `path` (.png or .svg).

    Raises:
        WinnowError: the file cannot be written.

    """
    drawing = pyplot()
    figure, axes = drawing.subplots(figsize=(8, 4.5), layout="constrained")
    places = range(len(rungs))[::-1]
    rates = [rung.rate for rung in rungs]
    below = [rung.rate - min(rung.rates) for rung in rungs]
    above = [max(rung.rates) - rung.rate for rung in rungs]
    axes.barh(places, rates, xerr=[below, above], color="tab:blue", ecolor="0.4", capsize=3)
    axes.set_yticks(places, [rung.name for rung in rungs])
    for place, rung in zip(places, rungs, strict=True):
        label = f"  {rung.times_first:.1f} times, p50 {rung.p50_ms:.1f} ms"
        axes.annotate(label, (max(rung.rates), place), fontsize=8, va="center")
    axes.set(xscale="log", xlabel="predictions per second")
    axes.set_xlim(min(rates) / 2, max(rates) * 40)
    axes.grid(axis="x", alpha=0.3)
    with writing(path):
        figure.savefig(path, dpi=150)
    drawing.close(figure)
