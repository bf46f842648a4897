"""Compares simulated latencies with those of clusters of this machine.

    python -m bench tails [--rounds 4] [--seconds 8] [--units-out units.json]

Measures the unit costs of serving, and then clusters of 1, 2, 4 and 8 shards with one and with four
clients in closed loops. Does so in several rounds, since the speed of a machine changes. Simulates
the same clusters from the unit costs of each round alone. Nothing else should run. It takes about
a quarter of an hour.

The result is each simulated p50 and p99 of all rounds, divided by the measured one, with the lowest
and the highest ratio of a round.
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
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean

from bench.figures import Figure, print_figures
from bench.positive import positive
from bench.quantiles import nearest_rank
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
_SIMULATED = 3
_LEVELS = {"p50": 0.5, "p99": 0.99}


_Load = tuple[int, int]
"""Shards and clients."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one load on one cluster in one round."""

    seconds: Sequence[float]
    processor_ms: float
    """Processor time of an answer: of front, nodes and client together."""


class Comparison:
    """The measured and the simulated answers of every load, by rounds.

    Answers of about the same time are alike, so an interval for independent ones would be too
    narrow. The spread of a figure is that of the rounds.
    """

    def __init__(self) -> None:
        self.measured: dict[_Load, list[Answers]] = defaultdict(list)
        self.simulated: dict[_Load, list[Answers]] = defaultdict(list)

    def figures(self) -> list[Figure]:
        """Returns the figures of all loads."""
        return [
            figure
            for load in sorted(self.measured)
            for figure in _figures(load, self.measured[load], self.simulated[load])
        ]


def _figures(
    load: _Load, measured: Sequence[Answers], simulated: Sequence[Answers]
) -> Iterator[Figure]:
    group = f"{load[0]} x {load[1]}"
    yield Figure(group, "answers", sum(len(each.seconds) for each in measured))
    for name, level in _LEVELS.items():
        real, found = (_quantiles(each, level) for each in (measured, simulated))
        yield _figure(group, f"measured {name}", real, "ms")
        yield _figure(group, f"simulated {name}", found, "ms")
        ratios = [one / other for one, other in zip(found, real, strict=True)]
        yield replace(
            _figure(group, f"simulated / measured {name}", ratios),
            target=f"within {WITHIN:.0%}",
            holds=abs(ratios[0] - 1) <= WITHIN,
        )
    for name, rounds in (("measured", measured), ("simulated", simulated)):
        title = f"{name} processor time of an answer"
        times = [each.processor_ms for each in rounds]
        yield _figure(group, title, [fmean(times), *times], "ms")


def _quantiles(rounds: Sequence[Answers], level: float) -> list[float]:
    """Returns a quantile of all answers, and then that of each round, in milliseconds."""
    parts = [each.seconds for each in rounds]
    return [1e3 * nearest_rank(part, level) for part in ([*chain(*parts)], *parts)]


def _figure(group: str, name: str, values: Sequence[float], unit: str = "") -> Figure:
    """Returns a figure from the value of all rounds, and that of each."""
    return Figure(group, name, values[0], unit, spread=(min(values[1:]), max(values[1:])))


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
            answers = asyncio.run(_measure_load(cluster.address, pids, count, seconds))
            comparison.measured[shards, count].append(answers)


async def _measure_load(address: str, pids: Sequence[int], clients: int, seconds: float) -> Answers:
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
    return Answers(latencies(outcomes), 1e3 * spent / max(len(outcomes), 1))


def simulate_cluster(units: Path, load: _Load, answers: int, seed: int) -> Answers:
    """Simulates the same load in another process."""
    shards, clients = load
    flags = ["--units", str(units.resolve()), "--shards", str(shards), "--one-machine", "--json"]
    flags += ["--passages-to-read", str(_PASSAGES_TO_READ), "--cores", str(cores())]
    flags += ["--passages-per-shard", str(PASSAGES // shards), "--answers", str(answers)]
    flags += ["--seed", str(seed), "--clients", str(clients)]
    done = subprocess.run(
        [sys.executable, "-m", "simulation", "tails", *flags],
        check=True,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    (row,) = json.loads(done.stdout)
    return Answers([each / 1e3 for each in row["latencies_ms"]], row["processor_ms"])


def _summary(load: _Load, rounds: Sequence[Answers]) -> str:
    """Returns a line that is there even if a simulation fails."""
    p50, p99 = (_quantiles(rounds, level)[0] for level in _LEVELS.values())
    return f"{load[0]} x {load[1]}: p50 {p50:.1f} ms, p99 {p99:.1f} ms"


def compare(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """Measures unit costs and clusters, and simulates the clusters; returns the figures."""
    shards = sorted(set(options.shards or [1, 2, 4, 8]))
    clients = sorted(set(options.clients or [1, 4]))
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
        for load, measured in comparison.measured.items():
            progress.say(_summary(load, measured))
        _simulate(rounds, comparison, progress)
    return comparison.figures()


def _simulate(rounds: Sequence[Path], comparison: Comparison, progress: StageProgress) -> None:
    """Simulates each load of each round from the unit costs of the round.

    Each has `_SIMULATED` answers for a measured one, so that rounds weigh the same on both sides.
    """

    def simulate(run: tuple[int, _Load]) -> Answers:
        number, load = run
        count = _SIMULATED * len(comparison.measured[load][number].seconds)
        return simulate_cluster(rounds[number], load, count, seed=number)

    runs = list(itertools.product(range(len(rounds)), comparison.measured))
    progress.start("simulating clusters", len(runs))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, load), answers in zip(runs, pool.map(simulate, runs), strict=True):
            comparison.simulated[load].append(answers)
            progress.advance()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench tails`."""
    add = parser.add_argument
    add("--shards", type=positive, action="append", help="number of shards; may be repeated")
    add("--clients", type=positive, action="append", help="number of clients; may be repeated")
    add("--rounds", type=positive, default=4, help="rounds of measurements")
    add("--seconds", type=float, default=8.0, help="seconds of each load in a round")
    add(
        "--questions", type=positive, default=60, help="questions of each measurement of unit costs"
    )
    add("--units-out", type=Path, help="file for the unit costs of the last round")
    add("--work", type=Path, help="directory in which indexes are kept for another run")


def run(options: argparse.Namespace) -> int:
    """Compares simulated with measured latencies; returns the exit code."""
    with tempfile.TemporaryDirectory() as directory:
        figures = compare(options, options.work or Path(directory))
    return print_figures(figures, as_json=options.json)
