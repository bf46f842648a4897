"""Reports the figures of operating points as JSON, CSV, a table and a picture."""

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill

from rich.table import Table

from winnow.cli import output
from winnow.cli.asking import Failures
from winnow.cli.drawing import figure
from winnow.cli.pareto.figures import PointFigures
from winnow.files.result_files import convert_write_errors

JSON, CSV = "points.json", "points.csv"
_WIDE_TERMINAL, _MIN_NAME = 130, 24
"""Width of a terminal that shows every figure, and minimum width of the column of names."""
_NAME_IN_PICTURE = 36
"""Maximum number of letters in a line of a name in the picture."""
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


def write_results(points: Sequence[PointFigures], directory: Path) -> None:
    """Writes `points.json` and `points.csv`.

    Raises WinnowError if one of them cannot be written.
    """
    text = json.dumps(output.to_json(points), indent=2)
    with convert_write_errors(directory / JSON):
        (directory / JSON).write_text(text + "\n", encoding="utf-8")
    files = sorted({name for each in points for name in each.by_file})
    judged = [f"{name} {metric}" for name in files for metric in ("EM", "F1")]
    with (
        convert_write_errors(directory / CSV),
        (directory / CSV).open("w", encoding="utf-8", newline="") as to,
    ):
        writer = csv.writer(to)
        writer.writerow(
            ["point", "exact match", *judged, "p50 ms", "p95 ms", "mean ms", "passages read",
             "passages needed", "bundle MB", "questions", "failed", "on the front"]
        )  # fmt: skip
        for each in points:
            accuracies = [v for name in files for v in each.by_file.get(name, (None, None))]
            means = (each.p50, each.p95, each.mean, each.read, each.needed)
            writer.writerow(
                [each.point, format_percent(each.exact_match, 2),
                 *(format_percent(v, 2) for v in accuracies),
                 *(f"{value:.2f}" for value in means), f"{each.megabytes:.1f}", each.questions,
                 each.failed, each.on_front]
            )  # fmt: skip


def format_percent(value: float | None, digits: int = 1) -> str:
    """Formats an accuracy; empty for None."""
    return "" if value is None else f"{value:.{digits}f}"


def table(points: Sequence[PointFigures], width: int, compare: PointFigures | None = None) -> Table:
    """Builds a table of the figures for a terminal of `width` columns.

    A narrow terminal gets only the most important figures. If `compare` is a point, its times
    divided by those of each point are shown, too.
    """
    columns = {**_columns(compare), **(_WIDE_COLUMNS if width >= _WIDE_TERMINAL else {})}
    built = output.table(
        ("", "point", *columns),
        (
            ("●" if each.on_front else "", each.point, *(text(each) for text in columns.values()))
            for each in points
        ),
        words={"point"},
    )
    built.caption, built.padding = "times in milliseconds", (0, 1, 0, 0)
    built.columns[1].min_width, built.columns[1].overflow = _MIN_NAME, "fold"
    return built


def _columns(compare: PointFigures | None) -> dict[str, Callable[[PointFigures], str]]:
    columns: dict[str, Callable[[PointFigures], str]] = {
        "EM": lambda each: format_percent(each.exact_match) or "-",
        "p50": lambda each: f"{each.p50:.1f}",
        "p95": lambda each: f"{each.p95:.1f}",
        "needed": lambda each: f"{each.needed:.1f}",
    }
    if compare is not None:
        columns["p50 ratio"] = lambda each: f"{compare.p50 / each.p50:.1f}"
        columns["mean ratio"] = lambda each: f"{compare.mean / each.mean:.1f}"
    return columns


_WIDE_COLUMNS: Mapping[str, Callable[[PointFigures], str]] = {
    "by file": lambda each: "  ".join(f"{n} {exact:.1f}" for n, (exact, _) in each.by_file.items()),
    "mean": lambda each: f"{each.mean:.1f}",
    "read": lambda each: f"{each.read:.1f}",
    "MB": lambda each: f"{each.megabytes:.0f}",
    "questions": lambda each: str(each.questions),
    "failed": lambda each: str(each.failed),
}


def failure_lines(points: Sequence[PointFigures]) -> Iterator[str]:
    """Lines with the reasons of failed questions."""
    for each in points:
        for line in Failures(dict(each.errors), dict(each.said)).lines():
            yield f"{each.point}: {line}"


def plot(points: Sequence[PointFigures], path: Path) -> None:
    """Draws accuracy against latency, with the Pareto front and Vespa's figures (.png, .svg).

    A point whose accuracy is unknown is a vertical line. Points that answered less than half of the
    questions are left out. Raises WinnowError if the file cannot be written.
    """
    with figure(path, 1, 2, figsize=(13, 5), width_ratios=(2, 1), layout="tight") as (own, theirs):
        from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter  # noqa: PLC0415

        answered = [
            (each.p50, each.exact_match, each)
            for each in points
            if each.comparable and each.exact_match is not None
        ]
        own.scatter([ms for ms, _, _ in answered], [em for _, em, _ in answered], s=18, alpha=0.5)
        best = sorted((each for each in answered if each[2].on_front), key=lambda each: each[0])
        own.plot([ms for ms, _, _ in best], [exact for _, exact, _ in best], marker="o")
        for number, (ms, exact, _) in enumerate(best, 1):
            own.annotate(
                str(number), (ms, exact), fontsize=8, xytext=(-3, 5), textcoords="offset points"
            )
        for each in points:
            if each.exact_match is None and math.isfinite(each.p50):
                own.axvline(each.p50, linestyle=":", color="grey")
                name = fill(f"{each.point} (timed only)", _NAME_IN_PICTURE)
                own.text(each.p50, 0.97, f"{name}  ", fontsize=7, ha="right", va="top",
                         transform=own.get_xaxis_transform())  # fmt: skip
        # names beside the points would overlap: points of the Pareto front are close together
        legend = "\n".join(f"{number}  {each.point}" for number, (_, _, each) in enumerate(best, 1))
        own.text(0.98, 0.03, legend, fontsize=7, ha="right", va="bottom", transform=own.transAxes,
                 bbox={"facecolor": "white", "edgecolor": "none"})  # fmt: skip
        own.set_title("asked the same questions in turn")
        theirs.plot([ms for _, ms, _ in VESPA], [exact for _, _, exact in VESPA], marker="o")
        for name, ms, exact in VESPA:
            theirs.annotate(
                name, (ms, exact), fontsize=7, xytext=(4, -8), textcoords="offset points"
            )
        theirs.set_title("for reference: DPR on Vespa,\nanother machine, index and questions")
        for axes in (own, theirs):
            axes.set(xscale="log", xlabel="median latency, ms", ylabel="exact match, %")
            axes.grid(alpha=0.3, which="both")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(ScalarFormatter())
            axes.xaxis.set_minor_formatter(NullFormatter())
