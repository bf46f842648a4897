"""Predicts the latencies of clusters by running their code with work of measured durations.

    winnow bench unit-costs --out units.json
    python -m simulation tails --units units.json --shards 1 --shards 8 --clients 4

Prints p50 and p99 of the answers, each with its 95 % interval. The intervals assume independent
answers, so they are too narrow if the units have a drift.
"""

import argparse
import itertools
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

from bench.positive import positive
from bench.quantiles import Estimate, quantile
from simulation import fixtures
from simulation.tails.simulating import Answers, Hardware, Load, TailSimulation, simulate
from simulation.tails.topology import Topology
from winnow.errors import WinnowError
from winnow.sizing.units import UnitCosts, read_unit_costs


def run(arguments: list[str]) -> int:
    """Simulates each number of shards with each number of clients; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        units = read_unit_costs(options.units)
    except WinnowError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if units.serving is None:
        sys.stderr.write(f"{options.units} has no costs of serving: measure them again\n")
        return 1
    rows = []
    try:
        for shards, clients in itertools.product(options.shards or [1], options.clients or [1]):
            rows.append(_simulate(options, units, shards, clients))
            if not options.json:
                _say(_HEADER if len(rows) == 1 else "")
                _say(_line(rows[-1]))
    finally:
        fixtures.remove()
    if options.json:
        _say(json.dumps(rows, indent=2))
    return 0


def _simulate(
    options: argparse.Namespace, units: UnitCosts, shards: int, clients: int
) -> dict[str, object]:
    assert units.serving is not None
    topology = Topology(
        shards,
        shards_per_node=options.shards_per_node,
        replicas=options.replicas,
        middle_fronts=options.middle_fronts,
        one_machine=options.one_machine,
    )
    load = Load(clients, answers=options.answers, passages_to_read=options.passages_to_read)
    answers = simulate(
        TailSimulation(
            topology,
            load,
            units,
            units.serving,
            hardware=Hardware(options.cores or units.cores, options.network_ms / 1e3),
            passages_per_shard=options.passages_per_shard,
            seed=options.seed,
        )
    )
    return _row(shards, clients, answers)


def _row(shards: int, clients: int, answers: Answers) -> dict[str, object]:
    p50, p99 = (quantile(answers.seconds, level) for level in (0.5, 0.99))
    return {
        "shards": shards,
        "clients": clients,
        "answers": len(answers.seconds),
        "failed": answers.failed,
        "partial": answers.partial,
        "latencies_ms": [round(1e3 * each, 3) for each in answers.seconds],
        "p50_ms": _milliseconds(p50),
        "p99_ms": _milliseconds(p99),
        "hedges": answers.hedges,
        "calls": answers.calls,
        "processor_ms": 1e3 * answers.processor_seconds,
    }


def _milliseconds(estimate: Estimate) -> dict[str, float | None]:
    """Returns an estimate in milliseconds; its bounds are None if they are infinite."""
    return {
        name: 1e3 * value if math.isfinite(value) else None
        for name, value in asdict(estimate).items()
    }


_HEADER = (
    f"{'shards':>6} {'clients':>7} {'answers':>7} {'p50 ms':>24} {'p99 ms':>24} "
    f"{'hedges':>7} {'core ms':>8}"
)


def _line(row: dict[str, object]) -> str:
    return (
        f"{row['shards']:>6} {row['clients']:>7} {row['answers']:>7} "
        f"{_interval(row['p50_ms']):>24} {_interval(row['p99_ms']):>24} "
        f"{row['hedges']:>7.3f} {row['processor_ms']:>8.1f}"
    )


def _interval(estimate: object) -> str:
    assert isinstance(estimate, dict)
    high = estimate["high"]
    bound = "inf" if high is None else f"{high:.1f}"
    return f"{estimate['value']:.1f} ({estimate['low']:.1f} to {bound})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m simulation tails",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, many = parser.add_argument, "May be repeated."
    add("--units", type=Path, required=True, help="Unit costs, by `winnow bench unit-costs`.")
    add("--shards", type=positive, action="append", help=f"Number of shards. {many}")
    add("--clients", type=positive, action="append", help=f"Clients in closed loops. {many}")
    add("--answers", type=positive, default=1_000, help="Number of answers.")
    add("--passages-to-read", type=positive, default=10, help="Passages that a question reads.")
    add("--passages-per-shard", type=positive, default=50_000, help="Passages of each shard.")
    add("--shards-per-node", type=positive, default=1, help="Shards of each content node.")
    add("--replicas", type=positive, default=1, help="Content nodes that hold each shard.")
    add("--middle-fronts", type=int, default=0, help="Middle fronts between front and nodes.")
    add("--one-machine", action="store_true", help="Run everything on one machine.")
    add("--cores", type=int, default=0, help="Cores of a machine; default: those of the units.")
    add("--network-ms", type=float, default=0.1, help="Time of a message between machines.")
    add("--seed", type=int, default=0, help="Seed of the durations.")
    add("--json", action="store_true", help="Print results as JSON.")
    return parser


def _say(text: str) -> None:
    if text:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
