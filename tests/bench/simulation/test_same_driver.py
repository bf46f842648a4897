"""The simulation sends, hedges and gives up as a front does: the same calls through both."""

import asyncio
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from virtual_loop import VirtualLoop

from bench.simulation.node import Ask, Steps
from bench.simulation.shard import Shard, Tally
from stateless.metrics import ReplicaMetrics
from stateless.policy.hedging import HedgeSettings
from stateless.policy.replicas import ReplicaSettings
from stateless.replicas.replicated import ReplicaPolicies, ReplicatedSearcher
from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.question import Depth, EncodedQuestion
from winnow.fakes import FINGERPRINT, FakeSearcher
from winnow.policy.outliers import OutlierSettings
from winnow.searcher import Retrieved

NAMES = ("a", "b")
POLICIES = ReplicaPolicies(
    ReplicaSettings(outliers=OutlierSettings(least_samples=3, strikes=2)),
    HedgeSettings(least_samples=3, budget=0.5, reserve=1),
)
BETWEEN = 0.05
_STEP = 1e-5
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
            self, question: EncodedQuestion, depth: Depth, deadline: Deadline
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
            await searcher.retrieve(_ASKED, Depth(1), deadline)
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
    st.sampled_from([0.0101, 0.0113, 0.0127, 0.0149, 0.2003, 0.4007]), min_size=7, max_size=31
)


@settings(max_examples=15, deadline=None)
@given(_LATENCIES)
def test_the_same_replicas_are_asked_at_the_same_moments(each: Sequence[float]) -> None:
    seen, until = by_the_front(each, 30)
    made, then = simulated(each, 30)
    assert made == seen
    assert then == pytest.approx(until)


def test_slow_calls_are_hedged_there() -> None:
    """Or the comparison would say nothing."""
    sent, _ = simulated([0.01] * 20 + [0.3], 40)
    assert len(sent) > 40
