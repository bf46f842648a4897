"""The simulation sends, hedges and gives up as a front does: the same calls through both."""

import asyncio
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import simpy
from fakes import FINGERPRINT, FakeSearcher
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from virtual_loop import VirtualLoop

from bench.simulation.node import Ask, Steps
from bench.simulation.shard import Shard, Tally
from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.policy.outliers import OutlierSettings
from winnow.searcher import Retrieved
from winnow.stateless.metrics import ReplicaMetrics
from winnow.stateless.policy.hedging import HedgeSettings
from winnow.stateless.policy.replicas import ReplicaSettings
from winnow.stateless.replicas.replicated import ReplicaPolicies, ReplicatedSearcher

NAMES = ("a", "b")
_TICK = 2.0**-20
"""Seconds. Sums of ticks are exact: what ends at the same moment by one clock does by the other."""
POLICIES = ReplicaPolicies(
    ReplicaSettings(outliers=OutlierSettings(least_samples=3, strikes=2)),
    HedgeSettings(least_samples=3, budget=0.5, reserve=1, shortest_delay=2.0**-10),
)
BETWEEN = 50_000 * _TICK
_STEP = 10 * _TICK
Sent = list[tuple[str, float]]
"""To which replica, and when."""
_ASKED = EncodedQuestion("who", (1,), np.array([1, 0], dtype=np.float32), FINGERPRINT)


class Latencies:
    """What each call takes at each replica, by how many it got before."""

    def __init__(self, each: Sequence[float], clock: Callable[[], float]) -> None:
        self._each, self._clock = each, clock
        self._got = dict.fromkeys(NAMES, 0)
        self.sent: Sent = []

    def next(self, name: str) -> float:
        place = 2 * self._got[name] + NAMES.index(name)
        self._got[name] += 1
        self.sent.append((name, round(self._clock(), 6)))
        # a call is late after what an earlier one took: no two take the same
        return self._each[place % len(self._each)] + _STEP * len(self.sent)


def by_the_front(each: Sequence[float], calls: int) -> tuple[Sent, float]:
    loop = VirtualLoop()
    latencies = Latencies(each, loop.time)

    class Slow(FakeSearcher):
        name = ""

        async def retrieve(
            self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
        ) -> Retrieved:
            await asyncio.sleep(latencies.next(self.name))
            return Retrieved((), (), ShardTimings())

    nodes = {name: Slow([]) for name in NAMES}
    for name, node in nodes.items():
        node.name = name
    searcher = ReplicatedSearcher(
        0,
        nodes.__getitem__,
        POLICIES,
        loop.time,
        random.Random(1),
        ReplicaMetrics(CollectorRegistry()),
    )
    searcher.update(NAMES)

    async def ask() -> None:
        for _ in range(calls):
            deadline = Deadline.after(2.0, loop.time)
            await searcher.retrieve(_ASKED, RetrievalDepth(1), deadline)
            await asyncio.sleep(BETWEEN)

    try:
        loop.run_until_complete(ask())
        return latencies.sent, loop.time()
    finally:
        loop.close()


def simulated(each: Sequence[float], calls: int) -> tuple[Sent, float]:
    env = simpy.Environment()
    latencies = Latencies(each, lambda: float(env.now))

    class Slow:
        def __init__(self, name: str) -> None:
            self._name = name

        def retrieve(self) -> Steps:
            yield env.timeout(latencies.next(self._name))

        def read(self, tokens: Sequence[int]) -> Steps:
            yield env.timeout(0)

    nodes = {name: Slow(name) for name in NAMES}
    shard = Shard(env, nodes, POLICIES, random.Random(1), 0.0, Tally())

    def ask() -> Steps:
        for _ in range(calls):
            deadline = Deadline.after(2.0, lambda: float(env.now))
            yield from shard.call(Ask(), deadline)
            yield env.timeout(BETWEEN)

    env.run(env.process(ask()))
    return latencies.sent, float(env.now)


_LATENCIES = st.lists(
    st.sampled_from([10_100, 11_300, 12_700, 14_900, 200_300, 400_700]), min_size=7, max_size=31
)
_TIED = [10_100, 200_300, 10_100, 10_100, 200_300, 200_300, 400_700]
"""A hedge answers at the same moment as the first attempt: both count."""
_TIED_LATER = [10_100, 200_300, 10_100, 200_300, 10_100, 200_300, 400_700]
"""The same where it matters which of the two counts first: the one that was sent first."""


@settings(max_examples=15)
@given(_LATENCIES)
@example(_TIED)
@example(_TIED_LATER)
def test_the_same_replicas_are_asked_at_the_same_moments(ticks: Sequence[int]) -> None:
    latencies = [each * _TICK for each in ticks]
    seen, until = by_the_front(latencies, 30)
    made, then = simulated(latencies, 30)
    assert made == seen
    assert then == pytest.approx(until)


def test_slow_calls_are_hedged_there() -> None:
    """Or the comparison would say nothing."""
    sent, _ = simulated([0.01] * 20 + [0.3], 40)
    assert len(sent) > 40
