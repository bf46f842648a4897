"""Compares simulated latencies with those of clusters of this machine.

    python -m bench tails [--rounds 4] [--seconds 8] [--units-out units.json]

Measures the unit costs of serving, and then clusters of 1, 2, 4 and 8 shards with one and with four
clients in closed loops. Does so in several rounds, since the speed of a machine changes. Simulates
the same clusters from the unit costs of each round alone. Nothing else should run. It takes about
a quarter of an hour.

The result is each simulated p50 and p99 of all rounds, divided by the measured one.
"""

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import Figure, print_figures
from bench.quantiles import Estimate, quantile, ratio
from bench.scenarios.load import FrontAsker, Load
from bench.scenarios.measurements import latencies
from winnow.bundle import load_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.units.asking import processor_seconds
from winnow.cli.units.report import speeds
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


@dataclass(slots=True)
class Answers:
    """The answers of one load on one cluster, in all rounds."""

    seconds: list[float] = field(default_factory=list)
    processor_ms: float = 0.0
    """Processor time of all answers: of front, nodes and client together."""

    def add(self, seconds: Sequence[float], processor_ms: float) -> None:
        """Adds answers with their latencies and their mean processor time."""
        self.seconds += seconds
        self.processor_ms += processor_ms * len(seconds)

    @property
    def mean_processor_ms(self) -> float:
        return self.processor_ms / max(len(self.seconds), 1)


class Comparison:
    """The measured and the simulated answers of every load, in all rounds."""

    def __init__(self) -> None:
        self.measured: dict[tuple[int, int], Answers] = defaultdict(Answers)
        """By shards and clients."""
        self.simulated: dict[tuple[int, int], Answers] = defaultdict(Answers)

    def figures(self) -> list[Figure]:
        """Returns the figures of all loads."""
        return [
            figure
            for shards, clients in sorted(self.measured)
            for figure in self._figures(f"{shards} x {clients}", (shards, clients))
        ]

    def _figures(self, group: str, load: tuple[int, int]) -> Iterator[Figure]:
        real, simulated = self.measured[load], self.simulated[load]
        yield Figure(group, "answers", len(real.seconds))
        for name, level in _LEVELS.items():
            own, found = (quantile(each.seconds, level) for each in (real, simulated))
            yield _in_ms(group, f"measured {name}", own)
            yield _in_ms(group, f"simulated {name}", found)
            yield _within(group, f"simulated / measured {name}", ratio(found, own))
        for name, each in (("measured", real), ("simulated", simulated)):
            title = f"{name} processor time of an answer"
            yield Figure(group, title, each.mean_processor_ms, "ms")


def measure_cluster(
    index: Path, shards: int, clients: Sequence[int], comparison: Comparison, seconds: float
) -> None:
    """Measures each number of clients on a cluster with a node for each shard."""
    plan = LocalPlan(index, default_bundle(), "127.0.0.1:0", front=_PLAIN)
    with LocalCluster(plan) as cluster:
        cluster.start()
        asyncio.run(cluster.wait_ready())
        pids = cluster.processes.pids()
        for count in clients:
            answers = comparison.measured[shards, count]
            asyncio.run(_measure_load(cluster.address, pids, count, seconds, answers))


async def _measure_load(
    address: str, pids: Sequence[int], clients: int, seconds: float, answers: Answers
) -> None:
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
    answers.add(latencies(outcomes), 1e3 * spent / max(len(outcomes), 1))


def simulate_cluster(
    units: Path, shards: int, clients: Sequence[int], answers: int, seed: int
) -> Any:
    """Simulates the same loads in another process; returns its rows."""
    flags = ["--units", str(units), "--shards", str(shards), "--one-machine", "--json"]
    flags += ["--passages-to-read", str(_PASSAGES_TO_READ), "--cores", str(cores())]
    flags += ["--passages-per-shard", str(PASSAGES // shards), "--answers", str(answers)]
    flags += ["--seed", str(seed)]
    flags += [flag for each in clients for flag in ("--clients", str(each))]
    done = subprocess.run(
        [sys.executable, "-m", "simulation", "tails", *flags],
        check=True,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    return json.loads(done.stdout)


def _summary(load: tuple[int, int], answers: Answers) -> str:
    """Returns a line that is there even if a simulation fails."""
    p50, p99 = (1e3 * quantile(answers.seconds, level).value for level in _LEVELS.values())
    return (
        f"{load[0]} x {load[1]}: {len(answers.seconds)} answers, p50 {p50:.1f} ms, p99 {p99:.1f} "
        f"ms, {answers.mean_processor_ms:.1f} ms of processor time each"
    )


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
    comparison, bundle = Comparison(), load_bundle(default_bundle())
    with StageProgress() as progress:
        progress.start("building indexes", None)
        indexes = build_indexes(directory, sorted({*shards, 1, SHARDS}))
        rounds = []
        for number in range(options.rounds):
            serving = measure_serving(bundle, indexes, ServingPlan(options.questions), progress)
            # the other units say how retrieval grows with larger shards, which there are none of
            units: UnitCosts = shipped_unit_costs().model_copy(update={"serving": serving})
            rounds.append(directory / f"units-{number}.json")
            for path in filter(None, (rounds[-1], options.units_out)):
                path.write_text(units.model_dump_json(indent=2), encoding="utf-8")
            progress.say(speeds(serving))
            progress.start(f"measuring clusters: round {number + 1}", len(shards))
            for each in shards:
                measure_cluster(indexes[each], each, clients, comparison, options.seconds)
                progress.advance()
        for load, answers in comparison.measured.items():
            progress.say(_summary(load, answers))
        _simulate(rounds, shards, clients, options.answers, comparison, progress)
    return comparison.figures()


def _simulate(
    rounds: Sequence[Path],
    shards: Sequence[int],
    clients: Sequence[int],
    answers: int,
    comparison: Comparison,
    progress: StageProgress,
) -> None:
    """Simulates each cluster from the unit costs of each round."""

    def simulate(run: tuple[int, int]) -> Any:
        seed, number = run
        return simulate_cluster(rounds[seed], number, clients, answers // len(rounds) or 1, seed)

    runs = list(itertools.product(range(len(rounds)), shards))
    progress.start("simulating clusters", len(runs))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for rows in pool.map(simulate, runs):
            for row in rows:
                own = comparison.simulated[row["shards"], row["clients"]]
                own.add([each / 1e3 for each in row["latencies_ms"]], row["processor_ms"])
            progress.advance()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench tails`."""
    add = parser.add_argument
    add("--shards", type=int, action="append", help="number of shards; may be repeated")
    add("--clients", type=int, action="append", help="number of clients; may be repeated")
    add("--rounds", type=int, default=4, help="rounds of measurements")
    add("--seconds", type=float, default=8.0, help="seconds of each load in a round")
    add("--questions", type=int, default=60, help="questions of each measurement of unit costs")
    add("--answers", type=int, default=1_600, help="answers of each simulated load in all rounds")
    add("--units-out", type=Path, help="file for the unit costs of the last round")
    add("--work", type=Path, help="directory in which indexes are kept for another run")


def run(options: argparse.Namespace) -> int:
    """Compares simulated with measured latencies; returns the exit code."""
    with tempfile.TemporaryDirectory() as directory:
        figures = compare(options, options.work or Path(directory))
    return print_figures(figures, as_json=options.json)
