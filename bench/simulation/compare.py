"""The simulation beside measurements: the same questions over the same small clusters."""

import asyncio
import itertools
import math
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import simpy

from bench.faults.quantiles import Estimate, quantile
from bench.simulation import measured
from bench.simulation.cluster import on_one_machine
from bench.simulation.costs import Costs
from bench.simulation.load import closed_loop, on_machine
from winnow.settings.common import cores
from winnow.sizing.units import Units

SHARDS = (1, 2, 4, 8)
CLIENTS = (1, 4)
WITHIN = 0.15
_SIMULATED = 2_500
"""Questions: more than are measured, so that chance does not matter there."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One load on one cluster; milliseconds."""

    shards: int
    clients: int
    answers: int
    measured_p50: Estimate
    measured_p99: Estimate
    simulated_p50: float
    simulated_p99: float
    measured_spent: float
    """Milliseconds of cores for an answer, of front, nodes and client together."""
    simulated_spent: float

    @property
    def off(self) -> tuple[float, float]:
        """How far the simulation is from the measurement, at p50 and p99."""
        return (
            self.simulated_p50 / self.measured_p50.value - 1,
            self.simulated_p99 / self.measured_p99.value - 1,
        )


def compare(
    units: Units, seconds: float, shards: Sequence[int] = SHARDS, clients: Sequence[int] = CLIENTS
) -> list[Compared]:
    """Measures every load on every cluster, and simulates it."""
    found = []
    with tempfile.TemporaryDirectory() as place:
        indexes = measured.indexes(Path(place), shards)
        questions: list[measured.Known] = []
        for number, index in indexes.items():
            with measured.cluster(index) as running:
                questions = questions or asyncio.run(measured.known(running.address))
                for each in clients:
                    asked = measured.closed_loop(running, questions, each, seconds)
                    found.append(_compared(units, questions, number, each, asyncio.run(asked)))
                    print(row(found[-1]), flush=True)
    return found


def simulate(
    units: Units, questions: Sequence[measured.Known], shards: int, clients: int, seed: int = 1
) -> measured.Seen:
    """The same of as many clients over as many shards of one simulated machine."""
    env, available = simpy.Environment(), cores()
    passages = {name for each in questions for name, _ in each.reads}
    costs = Costs(
        units, len(passages) / shards, units.node.shards[0].dimension, random.Random(seed)
    )
    # as `winnow up` shares the cores
    threads = math.ceil(available / shards)
    front, machine = on_one_machine(env, costs, available, shards, threads)
    asked = itertools.cycle([each.over(shards) for each in questions])
    client = on_machine(env, machine, costs.client)
    answered = closed_loop(env, front, asked, clients, _SIMULATED, client)
    return measured.Seen(tuple(each.seconds for each in answered), machine.worked / len(answered))


def row(each: Compared) -> str:
    """A line of the table in docs/sizing.md."""
    p50, p99 = each.measured_p50, each.measured_p99
    off = " | ".join(f"{share:+.0%}" for share in each.off)
    return (
        f"| {each.shards} | {each.clients} | {each.answers} | {p50.value:.1f} | "
        f"{each.simulated_p50:.1f} | {p99.value:.1f} ({p99.low:.1f} to {p99.high:.1f}) | "
        f"{each.simulated_p99:.1f} | {off} | {each.measured_spent:.1f} | "
        f"{each.simulated_spent:.1f} |"
    )


HEADER = (
    "| shards | clients | answers | p50 ms | simulated | p99 ms (95 %) | simulated | p50 off | "
    "p99 off | ms of cores | simulated |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def _compared(
    units: Units,
    questions: Sequence[measured.Known],
    shards: int,
    clients: int,
    seen: measured.Seen,
) -> Compared:
    made = simulate(units, questions, shards, clients)
    real, simulated = ([1e3 * each for each in own.seconds] for own in (seen, made))
    return Compared(
        shards,
        clients,
        len(real),
        quantile(real, 0.5),
        quantile(real, 0.99),
        quantile(simulated, 0.5).value,
        quantile(simulated, 0.99).value,
        1e3 * seen.spent,
        1e3 * made.spent,
    )
