"""Compares simulated latencies with those of clusters of this machine.

    python -m bench tails [--seconds 25] [--units-out units.json]

Measures the unit costs of serving, and then clusters of 1, 2, 4 and 8 shards with one and with four
clients in closed loops. Simulates the same clusters from these unit costs alone. Nothing else
should run. It takes about ten minutes.

The result is each simulated p50 and p99, divided by the measured one.
"""

import argparse
import asyncio
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure, print_figures
from bench.quantiles import Estimate, quantile, ratio
from bench.scenarios.load import FrontAsker, Load
from bench.scenarios.measurements import latencies
from winnow.bundle import load_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.units.asking import processor_seconds
from winnow.cli.units.serving import (
    PASSAGES,
    SHARDS,
    ServingPlan,
    build_indexes,
    measure_serving,
)
from winnow.client.messages import AnswerClient
from winnow.packaged import default_bundle
from winnow.settings.common import cores
from winnow.sizing.synthetic import synthetic_questions
from winnow.sizing.units import UnitCosts, shipped_unit_costs
from winnow.telemetry.progress import StageProgress

WITHIN = 0.15
_PASSAGES_TO_READ = 3
"""Few, so that many questions are asked in a short time."""
_WARM_UP = 60
_TIMEOUT = 30.0
_PLAIN = ("--cache-mb", "0", "--answer-cache-mb", "0", "--brown-out-floor", "1")
_LEVELS = {"p50": 0.5, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Measured:
    """The answers of one load on one cluster."""

    seconds: Sequence[float]
    processor_ms: float
    """Processor time of an answer: of front, nodes and client together."""


def measure_cluster(index: Path, clients: Sequence[int], seconds: float) -> dict[int, Measured]:
    """Measures each number of clients on a cluster with a node for each shard."""
    plan = LocalPlan(index, default_bundle(), "127.0.0.1:0", front=_PLAIN)
    with LocalCluster(plan) as cluster:
        cluster.start()
        asyncio.run(cluster.wait_ready())
        pids = cluster.processes.pids()
        return {
            count: asyncio.run(_measure_load(cluster.address, pids, count, seconds))
            for count in clients
        }


async def _measure_load(
    address: str, pids: Sequence[int], clients: int, seconds: float
) -> Measured:
    async with AnswerClient(address) as client:
        asker = FrontAsker(client, _TIMEOUT, _PASSAGES_TO_READ)
        load = Load(asker, synthetic_questions())
        for _ in range(_WARM_UP):
            await load.ask()
        load.phase = "measured"
        before = sum(map(processor_seconds, pids)) + time.process_time()
        await load.run_closed_loop(clients, seconds)
        spent = sum(map(processor_seconds, pids)) + time.process_time() - before
    outcomes = load.outcomes[load.phase]
    return Measured(latencies(outcomes), 1e3 * spent / max(len(outcomes), 1))


def simulate_cluster(units: Path, shards: int, clients: Sequence[int], answers: int) -> Any:
    """Simulates the same loads in another process; returns its rows."""
    flags = ["--units", str(units), "--shards", str(shards), "--one-machine", "--json"]
    flags += ["--passages-to-read", str(_PASSAGES_TO_READ), "--cores", str(cores())]
    flags += ["--passages-per-shard", str(PASSAGES // shards), "--answers", str(answers)]
    flags += [flag for each in clients for flag in ("--clients", str(each))]
    done = subprocess.run(
        [sys.executable, "-m", "simulation", "tails", *flags],
        check=True,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    return json.loads(done.stdout)


def _summary(shards: int, clients: int, measured: Measured) -> str:
    """Returns a line that is there even if the simulation fails."""
    p50, p99 = (1e3 * quantile(measured.seconds, level).value for level in _LEVELS.values())
    return (
        f"{shards} x {clients}: {len(measured.seconds)} answers, p50 {p50:.1f} ms, p99 {p99:.1f} "
        f"ms, {measured.processor_ms:.1f} ms of processor time each"
    )


def _figures(
    shards: int, measured: Mapping[int, Measured], rows: Sequence[Mapping[str, Any]]
) -> list[Figure]:
    found = []
    for row in rows:
        real = measured[row["clients"]]
        group = f"{shards} x {row['clients']}"
        found.append(Figure(group, "answers", len(real.seconds)))
        for name, level in _LEVELS.items():
            own, simulated = quantile(real.seconds, level), _estimate(row[f"{name}_ms"])
            found += [
                _in_ms(group, f"measured {name}", own),
                _in_ms(group, f"simulated {name}", simulated),
                _within(group, f"simulated / measured {name}", ratio(simulated, own)),
            ]
        for name, value in (("measured", real.processor_ms), ("simulated", row["processor_ms"])):
            found.append(Figure(group, f"{name} processor time of an answer", value, "ms"))
    return found


def _estimate(row: Mapping[str, float | None]) -> Estimate:
    """Returns an estimate in seconds from one in milliseconds."""
    values = {name: math.inf if each is None else each / 1e3 for name, each in row.items()}
    return Estimate(**values)


def _in_ms(group: str, name: str, estimate: Estimate) -> Figure:
    spread = 1e3 * estimate.low, 1e3 * estimate.high
    return Figure(group, name, 1e3 * estimate.value, "ms", spread=spread)


def _within(group: str, name: str, found: Estimate) -> Figure:
    return Figure(
        group,
        name,
        found.value,
        spread=(found.low, found.high),
        target=f"within {WITHIN:.0%}",
        holds=abs(found.value - 1) <= WITHIN,
    )


def compare(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """Measures unit costs and clusters, and simulates the clusters; returns the figures."""
    shards, clients = options.shards or [1, 2, 4, 8], options.clients or [1, 4]
    units_path = options.units_out or directory / "units.json"
    with StageProgress() as progress:
        progress.start("building indexes", None)
        indexes = build_indexes(directory, sorted({*shards, 1, SHARDS}))
        serving = measure_serving(
            load_bundle(default_bundle()), indexes, ServingPlan(options.questions), progress
        )
        # the other units say how retrieval grows with larger shards, which there are none of
        units: UnitCosts = shipped_unit_costs().model_copy(update={"serving": serving})
        units_path.write_text(units.model_dump_json(indent=2), encoding="utf-8")
        progress.start("measuring clusters", len(shards))
        measured = {}
        for number in shards:
            measured[number] = measure_cluster(indexes[number], clients, options.seconds)
            for count, own in measured[number].items():
                progress.say(_summary(number, count, own))
            progress.advance()
        progress.start("simulating clusters", None)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            rows = list(
                pool.map(
                    lambda number: simulate_cluster(units_path, number, clients, options.answers),
                    shards,
                )
            )
    return [
        figure
        for number, own in zip(shards, rows, strict=True)
        for figure in _figures(number, measured[number], own)
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench tails`."""
    add = parser.add_argument
    add("--shards", type=int, action="append", help="number of shards; may be repeated")
    add("--clients", type=int, action="append", help="number of clients; may be repeated")
    add("--seconds", type=float, default=25.0, help="seconds of each load")
    add("--questions", type=int, default=100, help="questions of each measurement of unit costs")
    add("--answers", type=int, default=1_500, help="answers of each simulation")
    add("--units-out", type=Path, help="file for the measured unit costs")
    add("--work", type=Path, help="directory in which indexes are kept for another run")


def run(options: argparse.Namespace) -> int:
    """Compares simulated with measured latencies; returns the exit code."""
    with tempfile.TemporaryDirectory() as directory:
        figures = compare(options, options.work or Path(directory))
    return print_figures(figures, as_json=options.json)
