"""What the tails of fan-out depend on: how many shards, slow machines, and what is done about them.

Every course is a row of clusters of growing size; only what the course is about differs.
"""

import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from statistics import fmean

import simpy

from bench.faults.quantiles import quantile
from bench.simulation.cluster import Layout, on_many_machines
from bench.simulation.costs import Costs, Pauses
from bench.simulation.load import made_up, open_loop
from winnow.cli.plan.formulae import front_ms
from winnow.policy.outliers import OutlierSettings
from winnow.settings.common import cores
from winnow.sizing.units import Units
from winnow.stateless.policy.hedging import HedgeSettings
from winnow.stateless.policy.replicas import ReplicaSettings
from winnow.stateless.policy.waiting import WaitingSettings
from winnow.stateless.replicas.replicated import ReplicaPolicies

SHARDS = (1, 4, 16, 64, 256, 1_000)
LENGTHS = (110, 130, 150, 170, 190, 210)
"""Tokens of the reader's input, for passages of 100 words."""
_READ = 10
_PASSAGES = 1e6
"""Of each shard."""
_RATE, _FRONT_BUSY = 4.0, 0.3
"""Questions a second, and the most that a front's event loop is busy with them, as a share of the
time: queues are short, so that what is shown is not them.
"""
CALLS, _LEAST, _MOST = 20_000, 60, 3_000
"""Calls of a point, and questions at least and at most."""
_FAN = 32
"""Shards of a middle node."""
_ONE_LEVEL = 64
"""Shards up to which the front asks them itself."""
_NEVER = 10**9
_PAUSES = Pauses(0.01, 0.1)
"""One call in a hundred waits for 100 ms on average."""
_UNHEDGED = HedgeSettings(budget=0.0)
_LENIENT = OutlierSettings(strikes=_NEVER, latency_factor=float(_NEVER))


@dataclass(frozen=True, slots=True)
class Course:
    """One line of a plot."""

    picture: str
    name: str
    layout: Layout
    pauses: Pauses = _PAUSES
    levels: int = 0
    """1: the front asks every shard; 2: middle nodes do; 0: whatever suits their number."""


@dataclass(frozen=True, slots=True)
class Point:
    """A cluster of one size; milliseconds."""

    course: Course
    shards: int
    questions: int
    p50: float
    p99: float
    coverage: float
    """Mean share of the shards that retrieved in time."""
    hedged: float
    """Hedges by calls."""
    ejections: int


def _unhedged(replicas: int = 1, waiting: WaitingSettings | None = None) -> Layout:
    policies = ReplicaPolicies(hedge=_UNHEDGED)
    return Layout(1, replicas, policies=policies, waiting=waiting or WaitingSettings())


COURSES = (
    Course("fan-out", "one level", _unhedged(), Pauses(), levels=1),
    Course("fan-out", f"middle nodes, each of {_FAN} shards", _unhedged(), Pauses(), levels=2),
    Course("hedging", "without hedges", _unhedged(replicas=2)),
    Course("hedging", "with hedges", Layout(1, replicas=2)),
    Course("waiting", "for every shard", _unhedged()),
    Course(
        "waiting",
        "for 95 %, then 2 % of the time left",
        _unhedged(waiting=WaitingSettings(0.95, 0.0, 0.02)),
    ),
    Course(
        "slow replicas",
        "by requests in hand alone, never left out",
        Layout(
            1,
            replicas=2,
            slow_share=0.05,
            slowness=8.0,
            policies=ReplicaPolicies(
                # latencies that are forgotten at once choose nobody
                ReplicaSettings(half_life=1e-6, outliers=_LENIENT),
                _UNHEDGED,
            ),
        ),
        Pauses(),
    ),
    Course(
        "slow replicas",
        "the quicker of two, slow ones left out, hedges",
        Layout(1, replicas=2, slow_share=0.05, slowness=8.0),
        Pauses(),
    ),
)


def run(units: Units, shards: Sequence[int] = SHARDS, calls: int = CALLS) -> list[Point]:
    """Simulates every course at every size, on all cores."""
    wanted = [(course, number) for course in COURSES for number in shards]
    slowest_first = sorted(wanted, key=lambda each: -each[1])
    with ProcessPoolExecutor(cores(), get_context("spawn")) as pool:
        made = {each: pool.submit(point, units, *each, calls) for each in slowest_first}
        return [made[each].result() for each in wanted]


def point(units: Units, course: Course, shards: int, calls: int = CALLS) -> Point:
    """Simulates a course at one size."""
    env, chance = simpy.Environment(), random.Random(shards)
    costs = Costs(units, _PASSAGES, units.node.shards[0].dimension, chance, course.pauses)
    two = course.levels == 2 or (not course.levels and shards > _ONE_LEVEL)
    layout = replace(course.layout, shards=shards, fan=_FAN if two else 0)
    front, tally = on_many_machines(env, costs, layout)
    asked = -(-shards // _FAN) if two else shards
    rate = min(_RATE, _FRONT_BUSY * 1e3 / front_ms(units, asked, _READ))
    number = min(max(calls // shards, _LEAST), _MOST)
    questions = made_up(chance, asked, _READ, LENGTHS)
    answered = open_loop(env, front, questions, rate, number, chance)
    spent = [1e3 * each.seconds for each in answered]
    return Point(
        course,
        shards,
        number,
        quantile(spent, 0.5).value,
        quantile(spent, 0.99).value,
        fmean(each.coverage for each in answered),
        tally.hedges / tally.calls,
        tally.ejections,
    )
