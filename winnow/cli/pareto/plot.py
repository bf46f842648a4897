"""The picture: accuracy against latency, the front drawn, and Vespa's table beside it."""

import math
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from winnow.cli.drawing import pyplot
from winnow.cli.outputs import writing
from winnow.cli.pareto.figures import PointFigures

_NAME = 36
"""Letters in a line."""
VESPA = (
    ("base, float", 741.0, 39.61),
    ("base, int8", 284.0, 37.87),
    ("medium, int8", 163.0, 36.79),
    ("small, int8", 119.0, 34.96),
    ("mini, int8", 92.0, 31.08),
    ("tiny, int8", 77.0, 25.73),
)
"""Reader, end-to-end milliseconds and exact match on NQ, 21 M passages, Xeon Gold 6240: Vespa's
published study of DPR (https://blog.vespa.ai/from-research-to-production-scaling-a-state-of-the-art-machine-learning-system/).
"""


def plot(found: Sequence[PointFigures], path: Path) -> None:
    """Draws every point that answered most questions (.png, .svg), those without an accuracy as a
    line.

    Raises:
        WinnowError: the file cannot be written.

    """
    drawing = pyplot()
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter  # noqa: PLC0415

    figure, (own, theirs) = drawing.subplots(1, 2, figsize=(13, 5), width_ratios=(2, 1))
    answered = [
        (each.p50, each.exact_match, each)
        for each in found
        if each.comparable and each.exact_match is not None
    ]
    own.scatter([ms for ms, _, _ in answered], [exact for _, exact, _ in answered], s=18, alpha=0.5)
    best = sorted((point for point in answered if point[2].on_front), key=lambda point: point[0])
    own.plot([ms for ms, _, _ in best], [exact for _, exact, _ in best], marker="o")
    for number, (ms, exact, _) in enumerate(best, 1):
        own.annotate(
            str(number), (ms, exact), fontsize=8, xytext=(-3, 5), textcoords="offset points"
        )
    for each in found:
        if each.exact_match is None and math.isfinite(each.p50):
            own.axvline(each.p50, linestyle=":", color="grey")
            name = fill(f"{each.point} (timed only)", _NAME)
            own.text(each.p50, 0.97, f"{name}  ", fontsize=7, ha="right", va="top",
                     transform=own.get_xaxis_transform())  # fmt: skip
    # names beside the points would lie on one another: the front's points are close together
    named = "\n".join(f"{number}  {each.point}" for number, (_, _, each) in enumerate(best, 1))
    own.text(0.98, 0.03, named, fontsize=7, ha="right", va="bottom", transform=own.transAxes,
             bbox={"facecolor": "white", "edgecolor": "none"})  # fmt: skip
    own.set_title("asked the same questions in turn")
    theirs.plot([ms for _, ms, _ in VESPA], [exact for _, _, exact in VESPA], marker="o")
    for name, ms, exact in VESPA:
        theirs.annotate(name, (ms, exact), fontsize=7, xytext=(4, -8), textcoords="offset points")
    theirs.set_title("for reference: DPR on Vespa,\nanother machine, index and questions")
    for axes in (own, theirs):
        axes.set(xscale="log", xlabel="median latency, ms", ylabel="exact match, %")
        axes.grid(alpha=0.3, which="both")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
    figure.tight_layout()
    with writing(path):
        figure.savefig(path, dpi=150)
    drawing.close(figure)
