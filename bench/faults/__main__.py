"""Faults on a real cluster: what must hold, and whether it does.

    python -m bench.faults --index INDEX --questions FILE [--only NAME] [--seconds N] [--json]

Starts a cluster for every scenario, finds out how much it can answer, asks half of that, and does
harm to it. Everything happens on this machine and through the loopback interface. Where a p99 is
judged, a phase lasts until it has 500 answers, at most four times its seconds; the interval beside
it holds 95 times in 100. Exits with 1 if something does not hold, with 3 if that cannot be told of
something. A run with few seconds only tries the scenarios out: p99 and the 2 000 questions of the
rolling restart need twenty or more.
"""

import argparse
import asyncio
import gc
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

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
from bench.faults.quantiles import quantile
from bench.faults.rows import Row
from bench.faults.stage import staged
from bench.faults.table import SCENARIOS, Scenario
from winnow.signals import end_on_signals
from winnow.tools.questions import read_questions

_SIGNS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}


def main() -> int:
    """Runs the scenarios that were asked for; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.faults", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--only", choices=names, action="append", help="may be repeated")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    end_on_signals()
    gc.freeze()  # a client that looks for garbage measures itself
    console = Console(stderr=True, highlight=False)
    questions = [each.question for each in read_questions(options.questions)]
    results = {}
    for scenario in SCENARIOS:
        if scenario.name in (options.only or names):
            seen = asyncio.run(_play(scenario, options.index, questions, options.seconds, console))
            results[scenario.name] = (seen, [judge(seen) for judge in scenario.criteria])
            _tell(console, scenario.name, results[scenario.name][1])
    if options.json:
        print(json.dumps({name: as_json(*result) for name, result in results.items()}, indent=2))
    else:
        Console(highlight=False).print(_table(results))
    return exit_code(finding for _, found in results.values() for finding in found)


async def _play(
    scenario: Scenario, index: Path, questions: Sequence[str], seconds: float, console: Console
) -> Observed:
    with console.status(scenario.name) as status:

        def say(what: str) -> None:
            status.update(f"{scenario.name} ({scenario.fault}): {what}")

        async with staged(index, questions, scenario.shape, seconds, say) as stage:
            await scenario.course(stage)
            return stage.seen


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


def _tell(console: Console, name: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        console.print(f"{_sign(finding)} {name}: {finding.said}")


def _table(results: dict[str, tuple[Observed, list[Finding]]]) -> Table:
    table = Table("", "fault", "what was seen")
    for scenario in SCENARIOS:
        if scenario.name in results:
            for place, finding in enumerate(results[scenario.name][1]):
                table.add_row(_sign(finding), "" if place else scenario.fault, finding.said)
    return table


def _sign(finding: Finding) -> str:
    return _SIGNS[finding.holds]


if __name__ == "__main__":
    sys.exit(main())
