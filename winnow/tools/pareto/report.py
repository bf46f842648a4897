"""Writing figures where people and programs look: JSON, CSV, a table."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from winnow.tools.failures import Failures
from winnow.tools.outputs import writing
from winnow.tools.pareto.figures import Figures

JSON, CSV = "points.json", "points.csv"


def write(found: Sequence[Figures], directory: Path) -> None:
    """Writes `points.json` and `points.csv`.

    Raises:
        WinnowError: one of them cannot be written.

    """
    rows = json.dumps([each.as_json() for each in found], indent=2)
    with writing(directory / JSON):
        (directory / JSON).write_text(rows + "\n", encoding="utf-8")
    with writing(directory / CSV):
        _write_csv(found, directory / CSV)


def _write_csv(found: Sequence[Figures], path: Path) -> None:
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
                f"{value:.2f}"
                for name in files
                for value in each.by_file.get(name, (float("nan"),) * 2)
            ]
            means = (each.p50, each.p95, each.mean, each.read, each.needed)
            values += [f"{value:.2f}" for value in means]
            counts = [f"{each.megabytes:.1f}", each.questions, each.failed, each.on_front]
            writer.writerow([each.point, percent(each.exact_match, 2), *values, *counts])


def percent(value: float | None, digits: int = 1) -> str:
    """An accuracy, or that there is none."""
    return "not measured" if value is None else f"{value:.{digits}f}"


def table(found: Sequence[Figures], compare: Figures | None = None) -> Table:
    """The figures, for a terminal; medians and means are compared with one of them if given."""
    made = Table("", "point", "EM", "by file", "p50 ms", "p95 ms", "mean ms")
    for name in ("read", "needed", "MB", "questions", "failed"):
        made.add_column(name)
    if compare is not None:
        made.add_column("times as fast")
        made.add_column("by the mean")
    for each in found:
        files = "  ".join(f"{name} {exact:.1f}" for name, (exact, _) in each.by_file.items())
        row = ["●" if each.on_front else "", each.point, percent(each.exact_match), files]
        row += [f"{each.p50:.1f}", f"{each.p95:.1f}", f"{each.mean:.1f}"]
        row += [f"{each.read:.1f}", f"{each.needed:.1f}"]
        row += [f"{each.megabytes:.0f}", str(each.questions), str(each.failed)]
        if compare is not None:
            row += [f"{compare.p50 / each.p50:.1f}", f"{compare.mean / each.mean:.1f}"]
        made.add_row(*row)
    return made


def reasons(found: Sequence[Figures]) -> list[str]:
    """Why questions failed, for people."""
    return [
        f"{each.point}: {line}"
        for each in found
        for line in Failures(dict(each.errors), dict(each.said)).lines()
    ]
