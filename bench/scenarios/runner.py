"""Runs scenarios on clusters of real processes, judges them, and prints the findings."""

import argparse
import gc
import json
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.status import Status
from rich.table import Table

from bench.inputs import add_index_and_questions, read_question_texts
from bench.quantiles import quantile
from bench.scenarios.criteria import Criterion, Finding, exit_code
from bench.scenarios.measurements import (
    OK,
    Measurements,
    QuestionOutcome,
    availability,
    completeness,
    latencies,
    latency_quantile,
    mean_coverage,
)
from bench.scenarios.stage import Setup, Stage, open_stage
from winnow import signals

Results = dict[str, tuple[Measurements, Sequence[Finding]]]
"""Measurements and findings by name of the scenario."""
_SYMBOLS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fault or an attack, and the promises that a cluster must keep in it."""

    description: str
    procedure: Callable[[Stage], Awaitable[None]]
    """Causes the fault or attack, and records outcomes in the load and values in the stage."""
    criteria: tuple[Criterion, ...]
    setup: Setup = field(default_factory=Setup)


def add_arguments(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Adds the flags that all benchmarks with scenarios share. `names` are the scenario names."""
    add_index_and_questions(parser)
    parser.add_argument(
        "--only", choices=[*names], action="append", help="scenario to run; may be repeated"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each phase")


def run(
    options: argparse.Namespace, scenarios: Mapping[str, Scenario], *, one_cluster: bool = False
) -> int:
    """Runs the chosen scenarios and prints the findings; returns the exit code.

    Args:
        options: the parsed flags of `add_arguments`
        scenarios: all scenarios by name
        one_cluster: whether all scenarios run on one cluster with the setup of the first scenario,
            to find effects of one scenario on the next; else each scenario has a separate cluster

    """
    chosen = {name: scenarios[name] for name in scenarios if name in (options.only or scenarios)}
    gc.freeze()  # so that garbage collection in this client does not add to latencies
    questions, results = read_question_texts(options.questions), Results()
    for group in [chosen] if one_cluster else [{name: each} for name, each in chosen.items()]:
        signals.run(_run_on_one_cluster(group, options, questions, results))
    if options.json:
        print(json.dumps({name: _as_json(*result) for name, result in results.items()}, indent=2))
    else:
        Console(highlight=False).print(_results_table(chosen, results))
    return exit_code(finding for _, found in results.values() for finding in found)


async def _run_on_one_cluster(
    scenarios: Mapping[str, Scenario],
    options: argparse.Namespace,
    questions: Sequence[str],
    results: Results,
) -> None:
    """Runs scenarios on one cluster, and adds the result of each to `results`."""
    setup, console = next(iter(scenarios.values())).setup, Console(stderr=True, highlight=False)
    with console.status("starting") as status:
        async with open_stage(
            options.index, questions, setup, options.seconds, status.update
        ) as stage:
            for name, scenario in scenarios.items():
                stage.show_progress = _progress_reporter(status, f"{name} ({scenario.description})")
                await scenario.procedure(stage)
                measurements = Measurements(
                    defaultdict(list, stage.load.outcomes), dict(stage.values)
                )
                findings = [judge(measurements) for judge in scenario.criteria]
                results[name] = (measurements, findings)
                for finding in findings:
                    console.print(f"{_SYMBOLS[finding.holds]} {name}: {finding.summary}")
                stage.load.outcomes.clear()
                stage.values.clear()


def _progress_reporter(status: Status, title: str) -> Callable[[str], None]:
    return lambda step: status.update(f"{title}: {step}")


def _results_table(scenarios: Mapping[str, Scenario], results: Results) -> Table:
    table = Table("", "scenario", "finding")
    for name, (_, findings) in results.items():
        for number, finding in enumerate(findings):
            first = "" if number else scenarios[name].description
            table.add_row(_SYMBOLS[finding.holds], first, finding.summary)
    return table


def _as_json(measurements: Measurements, findings: Sequence[Finding]) -> dict[str, object]:
    """Returns the JSON object of a result: statistics of every phase, values and findings."""
    phases = {
        phase: {
            "questions": len(outcomes),
            "availability": availability(outcomes),
            "complete": completeness(outcomes),
            "coverage": mean_coverage(outcomes),
            "p50_ms": latency_quantile(outcomes, 0.5) * 1e3,
            "p99_ms": latency_quantile(outcomes, 0.99) * 1e3,
            "p99_interval_ms": _p99_interval_ms(outcomes),
        }
        for phase, outcomes in measurements.phases.items()
        if any(outcome.status == OK for outcome in outcomes)
    }
    verdicts = [{"holds": each.holds, "said": each.summary} for each in findings]
    return {"phases": phases, "marks": dict(measurements.values), "findings": verdicts}


def _p99_interval_ms(outcomes: Sequence[QuestionOutcome]) -> list[float | None]:
    """Returns the confidence interval of the p99 in ms. An infinite upper bound becomes None."""
    p99 = quantile(latencies(outcomes), 0.99)
    return [p99.low * 1e3, None if math.isinf(p99.high) else p99.high * 1e3]
