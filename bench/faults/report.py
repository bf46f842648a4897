"""Findings for people and for programs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from bench.faults.judge import (
    Finding,
    Observed,
    availability,
    completeness,
    coverage,
    latency,
    seconds,
)
from bench.faults.quantiles import quantile
from bench.faults.rows import Row

Results = Mapping[str, tuple[Observed, Sequence[Finding]]]
_SIGNS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}


def as_json(seen: Observed, findings: Sequence[Finding]) -> dict[str, object]:
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


def table(what: str, told: Mapping[str, str], results: Results) -> Table:
    """All findings; `told` names each scenario's fault in words, `what` is the column's title."""
    found = Table("", what, "what was seen")
    for name, (_, findings) in results.items():
        for place, finding in enumerate(findings):
            found.add_row(_sign(finding), "" if place else told[name], finding.said)
    return found


def _sign(finding: Finding) -> str:
    return _SIGNS[finding.holds]
