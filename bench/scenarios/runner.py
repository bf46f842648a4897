"""Runs scenarios on real clusters, judges them, and prints what was found."""

import argparse
import gc
import json
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.status import Status
from rich.table import Table

from bench.inputs import add_index_and_questions
from bench.inputs import questions as read
from bench.quantiles import quantile
from bench.scenarios.criteria import Criterion, Finding, exit_code
from bench.scenarios.rows import (
    OK,
    Observed,
    Row,
    availability,
    completeness,
    coverage,
    latency,
    seconds,
)
from bench.scenarios.stage import Shape, Stage, staged
from winnow import signals

Results = Mapping[str, tuple[Observed, Sequence[Finding]]]
_SIGNS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A fault or an attack, and what must hold."""

    name: str
    description: str
    course: Callable[[Stage], Awaitable[None]]
    """What is done to the cluster; leaves rows and marks."""
    criteria: tuple[Criterion, ...]
    shape: Shape = field(default_factory=Shape)


def add_arguments(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Adds the flags that all benchmarks of scenarios share."""
    add_index_and_questions(parser)
    parser.add_argument("--only", choices=names, action="append", help="may be repeated")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each phase")


def run(
    options: argparse.Namespace, scenarios: Sequence[Scenario], *, one_cluster: bool = False
) -> int:
    """Runs the chosen scenarios and prints the findings; returns the exit code.

    Args:
        options: parsed flags, as `add_arguments` adds them
        scenarios: all scenarios
        one_cluster: whether all run on one cluster, of the first one's shape, so that a scenario
            meets what the one before it left behind; else each has a cluster of its shape

    """
    chosen = [each for each in scenarios if not options.only or each.name in options.only]
    gc.freeze()  # or the client's garbage collection is part of the latency
    console, asked = Console(stderr=True, highlight=False), read(options.questions)
    results: dict[str, tuple[Observed, list[Finding]]] = {}
    for group in [chosen] if one_cluster else [[each] for each in chosen]:
        signals.run(_play(group, options.index, asked, options.seconds, console, results))
    if options.json:
        print(json.dumps({name: _plain(*result) for name, result in results.items()}, indent=2))
    else:
        described = {each.name: each.description for each in chosen}
        Console(highlight=False).print(_table(described, results))
    return exit_code(finding for _, found in results.values() for finding in found)


async def _play(
    group: Sequence[Scenario],
    index: Path,
    questions: Sequence[str],
    lasting: float,
    console: Console,
    results: dict[str, tuple[Observed, list[Finding]]],
) -> None:
    """Runs scenarios on one cluster; adds their results."""
    with console.status("starting") as status:
        async with staged(index, questions, group[0].shape, lasting, status.update) as stage:
            for number, scenario in enumerate(group):
                if number:
                    stage.load.rows.clear()
                    stage.marks.clear()
                stage.say = _say(status, scenario)
                await scenario.course(stage)
                seen = Observed(defaultdict(list, stage.load.rows), dict(stage.marks))
                findings = [judge(seen) for judge in scenario.criteria]
                results[scenario.name] = (seen, findings)
                for finding in findings:
                    console.print(f"{_SIGNS[finding.holds]} {scenario.name}: {finding.summary}")


def _say(status: Status, scenario: Scenario) -> Callable[[str], None]:
    return lambda what: status.update(f"{scenario.name} ({scenario.description}): {what}")


def _table(described: Mapping[str, str], results: Results) -> Table:
    table = Table("", "scenario", "what was seen")
    for name, (_, findings) in results.items():
        for number, finding in enumerate(findings):
            first = "" if number else described[name]
            table.add_row(_SIGNS[finding.holds], first, finding.summary)
    return table


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
        if any(row.status == OK for row in rows)
    }
    told = [{"holds": each.holds, "said": each.summary} for each in findings]
    return {"phases": phases, "marks": dict(seen.marks), "findings": told}


def _interval(rows: Sequence[Row]) -> list[float | None]:
    """Returns the confidence interval of the 99th percentile latency, in ms.

    The upper end is None with too few answers.
    """
    seen = quantile(seconds(rows), 0.99)
    return [seen.low * 1e3, None if math.isinf(seen.high) else seen.high * 1e3]
