"""Writing figures where people and programs look: JSON, CSV, a table."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from winnow.cli.failures import Failures
from winnow.cli.outputs import writing
from winnow.cli.pareto.figures import PointFigures

JSON, CSV = "points.json", "points.csv"
_WIDE, _NAME = 130, 24
"""Columns of a terminal that has room for every figure, and of the names in any."""


def write(found: Sequence[PointFigures], directory: Path) -> None:
    """Writes `points.json` and `points.csv`.

    Raises:
        WinnowError: one of them cannot be written.

    """
    rows = json.dumps([each.as_json() for each in found], indent=2)
    with writing(directory / JSON):
        (directory / JSON).write_text(rows + "\n", encoding="utf-8")
    with writing(directory / CSV):
        _write_csv(found, directory / CSV)


def _write_csv(found: Sequence[PointFigures], path: Path) -> None:
    files = sorted({name for each in found for name in each.by_file})
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        judged = [f"{name} {what}" for name in files for what in ("EM", "F1")]
        times = ["p50 ms", "p95 ms", "mean ms"]
        passages = ["passages read", "passages needed"]
        head = ["point", "exact match", *judged, *times, *passages, "bundle MB"]
        writer.writerow([*head, "questions", "failed", "on the front"])
        for each in found:
            values = [
                percent(value, 2)
                for name in files
                for value in each.by_file.get(name, (None, None))
            ]
            means = (each.p50, each.p95, each.mean, each.read, each.needed)
            values += [f"{value:.2f}" for value in means]
            counts = [f"{each.megabytes:.1f}", each.questions, each.failed, each.on_front]
            writer.writerow([each.point, percent(each.exact_match, 2), *values, *counts])


def percent(value: float | None, digits: int = 1) -> str:
    """An accuracy; nothing where there is none."""
    return "" if value is None else f"{value:.{digits}f}"


def table(found: Sequence[PointFigures], width: int, compare: PointFigures | None = None) -> Table:
    """The figures, for a terminal of so many columns; where they are few, only what decides. Times
    are compared with those of `compare` if given.
    """
    columns = {**_columns(compare), **(_MORE if width >= _WIDE else {})}
    made = Table("", box=box.SIMPLE, padding=(0, 1, 0, 0), caption="times in milliseconds")
    made.add_column("point", min_width=_NAME, overflow="fold")
    for name in columns:
        made.add_column(name, no_wrap=True, justify="right")
    for each in found:
        values = [told(each) for told in columns.values()]
        made.add_row("●" if each.on_front else "", each.point, *values)
    return made


def _columns(compare: PointFigures | None) -> dict[str, Callable[[PointFigures], str]]:
    columns: dict[str, Callable[[PointFigures], str]] = {
        "EM": lambda each: "-" if each.exact_match is None else f"{each.exact_match:.1f}",
        "p50": lambda each: f"{each.p50:.1f}",
        "p95": lambda each: f"{each.p95:.1f}",
        "needed": lambda each: f"{each.needed:.1f}",
    }
    if compare is not None:
        columns["faster"] = lambda each: f"{compare.p50 / each.p50:.1f}"
        columns["by mean"] = lambda each: f"{compare.mean / each.mean:.1f}"
    return columns


def _by_file(each: PointFigures) -> str:
    return "  ".join(f"{name} {exact:.1f}" for name, (exact, _) in each.by_file.items())


_MORE: Mapping[str, Callable[[PointFigures], str]] = {
    "by file": _by_file,
    "mean": lambda each: f"{each.mean:.1f}",
    "read": lambda each: f"{each.read:.1f}",
    "MB": lambda each: f"{each.megabytes:.0f}",
    "asked": lambda each: str(each.questions),
    "failed": lambda each: str(each.failed),
}


def reasons(found: Sequence[PointFigures]) -> list[str]:
    """Why questions failed, for people."""
    return [
        f"{each.point}: {line}"
        for each in found
        for line in Failures(dict(each.errors), dict(each.said)).lines()
    ]
