"""Findings for people and for programs."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from bench.common.quantiles import quantile
from bench.faults.judge import (
    Finding,
    Observed,
    availability,
    completeness,
    coverage,
    exit_code,
    latency,
    seconds,
)
from bench.faults.rows import Row

Results = Mapping[str, tuple[Observed, Sequence[Finding]]]
_SIGNS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}


def _plain(seen: Observed, findings: Sequence[Finding]) -> dict[str, object]:
    """Plain values: figures of every phase, marks and findings."""
    phases = {
        phase: {
            "questions": len(rows),
            "availability": availability(rows),
            "complete": completeness(rows),
            "coverage": coverage(rows),
            "p50_ms": latency(rows, 0.5) * 1e3,
            "p99_ms": latency(rows, 0.99) * 1e3,
            "p99_interval_ms": _interval(rows),
        }
        for phase, rows in seen.phases.items()
        if any(row.status == "OK" for row in rows)
    }
    return {
        "phases": phases,
        "marks": dict(seen.marks),
        "findings": [asdict(finding) for finding in findings],
    }


def _interval(rows: Sequence[Row]) -> list[float | None]:
    """Both ends; null where there were too few answers to bound it."""
    seen = quantile(seconds(rows), 0.99)
    return [seen.low * 1e3, None if math.isinf(seen.high) else seen.high * 1e3]


def tell(console: Console, name: str, findings: Sequence[Finding]) -> None:
    """Says what was found in one scenario."""
    for finding in findings:
        console.print(f"{_sign(finding)} {name}: {finding.said}")


def _table(what: str, told: Mapping[str, str], results: Results) -> Table:
    """All findings; `told` names each scenario's fault in words, `what` is the column's title."""
    found = Table("", what, "what was seen")
    for name, (_, findings) in results.items():
        for place, finding in enumerate(findings):
            found.add_row(_sign(finding), "" if place else told[name], finding.said)
    return found


def show(what: str, told: Mapping[str, str], results: Results, *, as_json: bool) -> int:
    """Prints all results as a table or as JSON; the exit code."""
    if as_json:
        print(json.dumps({name: _plain(*result) for name, result in results.items()}, indent=2))
    else:
        Console(highlight=False).print(_table(what, told, results))
    return exit_code(finding for _, found in results.values() for finding in found)


def _sign(finding: Finding) -> str:
    return _SIGNS[finding.holds]
