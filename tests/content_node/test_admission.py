"""A content node's bounded queue: in time or refused, and every place in it given back."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from fakes import ENCODED, FakeSearcher, reading
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry

from winnow.content_node.admission import AdmittedSearcher, NodeLoad
from winnow.content_node.metrics import NodeMetrics
from winnow.deadline import Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import RetrievalDepth
from winnow.errors import DeadlineExceededError, OverloadedError, UnavailableError
from winnow.policy.pace import Pace

HITS = [Hit(row=row, passage_id=str(row), distance=1.0, hybrid_distance=1.0) for row in range(4)]
Call = Callable[[AdmittedSearcher, Deadline], Coroutine[Any, Any, object]]
CALLS: list[tuple[Call, int]] = [
    (lambda node, deadline: node.retrieve(ENCODED, RetrievalDepth(passages=100), deadline), 0),
    (lambda node, deadline: node.read(ENCODED, HITS, deadline), 4),
    (lambda node, deadline: node.search(ENCODED, RetrievalDepth(passages=4), deadline), 4),
]


@dataclass
class Node:
    """A shard whose calls hang until they are cancelled, unless told otherwise."""

    inner: FakeSearcher = field(
        default_factory=lambda: FakeSearcher([reading(str(n)) for n in range(4)], hangs=True)
    )
    most_reads: int = 1_000
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.registry = CollectorRegistry()
        self.pace = Pace(2.0, self.clock)
        metrics = NodeMetrics(self.registry)
        load = NodeLoad(self.most_reads, pace=self.pace, clock=self.clock, metrics=metrics)
        self.searcher = AdmittedSearcher(self.inner, load)
        self.running: list[asyncio.Task[object]] = []

    def deadline(self, seconds: float) -> Deadline:
        return Deadline.after(seconds, self.clock)

    async def begin(self, call: Call, seconds: float = 10.0) -> None:
        """Calls, and returns once the call is let in; raises if it is refused."""
        self.inner.hanging.clear()
        task = asyncio.create_task(call(self.searcher, self.deadline(seconds)))
        hanging = asyncio.create_task(self.inner.hanging.wait())
        await asyncio.wait({task, hanging}, return_when=asyncio.FIRST_COMPLETED)
        hanging.cancel()
        if task.done():
            task.result()
        self.running.append(task)

    async def cancel(self) -> None:
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        self.running.clear()

    async def told(self) -> tuple[float, int]:
        """Seconds per read and reads in hand, as a front is told."""
        self.inner.hangs = False
        info = await self.searcher.info(self.deadline(10.0))
        self.inner.hangs = True
        return info.seconds_per_read, info.reads_in_hand

    def learn(self, seconds: float) -> None:
        """Lets it find out how long a read takes."""
        self.pace.begin()
        self.clock.advance(seconds)
        self.pace.done(1)


RETRIEVE, READ, SEARCH = (call for call, _ in CALLS)


@pytest.mark.parametrize(("call", "reads"), CALLS, ids=["retrieve", "read", "search"])
async def test_a_call_counts_for_what_it_reads_while_it_lasts(call: Call, reads: int) -> None:
    node = Node()
    await node.begin(call)
    assert await node.told() == (0.0, reads)
    assert node.registry.get_sample_value("winnow_node_reads_in_hand") == reads
    await node.cancel()
    assert await node.told() == (0.0, 0)
    assert node.registry.get_sample_value("winnow_node_reads_in_hand") == 0


async def test_late_calls_are_refused_with_a_time_to_retry() -> None:
    node = Node()
    node.learn(0.1)
    await node.begin(READ, 1.0)
    with pytest.raises(OverloadedError) as caught:  # 8 reads of 0.1 s
        await node.begin(SEARCH, 0.79)
    assert caught.value.retry_after == pytest.approx(0.1, abs=0.05)
    assert (await node.told())[1] == 4
    await node.begin(SEARCH, 0.81)
    assert (await node.told())[1] == 8
    await node.cancel()
    refused = node.registry.get_sample_value("winnow_node_admission_total", {"result": "refused"})
    assert refused == 1


async def test_the_queue_is_bounded_also_before_the_pace_is_known() -> None:
    node = Node(most_reads=6)
    await node.begin(READ, 1e6)
    with pytest.raises(OverloadedError):
        await node.begin(READ, 1e6)
    await node.cancel()


async def test_retrieving_never_waits_for_reads_and_is_bounded_in_number() -> None:
    node = Node(most_reads=6)
    node.learn(10.0)
    await node.begin(READ, 60.0)
    for _ in range(6):
        await node.begin(RETRIEVE, 0.1)
    with pytest.raises(OverloadedError, match="6 retrievals are running"):
        await node.begin(RETRIEVE, 0.1)
    await node.cancel()
    await node.begin(RETRIEVE, 0.1)
    await node.cancel()


async def test_an_assumed_pace_counts_until_one_is_measured() -> None:
    node = Node()
    node.pace.assume(0.1)
    assert (await node.told())[0] == pytest.approx(0.1)
    await node.begin(READ, 1.0)
    with pytest.raises(OverloadedError):  # 8 reads of 0.1 s
        await node.begin(SEARCH, 0.79)
    node.clock.advance(20.0)
    node.learn(0.4)
    assert (await node.told())[0] == pytest.approx(0.4, rel=0.01)
    await node.cancel()


async def test_the_pace_is_told_before_anything_was_let_in() -> None:
    clock, registry = ManualClock(), CollectorRegistry()
    pace = Pace(2.0, clock)
    NodeLoad(10, pace=pace, clock=clock, metrics=NodeMetrics(registry))
    assert registry.get_sample_value("winnow_node_seconds_per_read") == 0.0
    pace.assume(0.02)  # a shard is loaded after the composition of the node
    assert registry.get_sample_value("winnow_node_seconds_per_read") == pytest.approx(0.02)


async def test_an_idle_node_tries_even_calls_that_seem_hopeless() -> None:
    node = Node()
    node.learn(10.0)
    await node.begin(READ, 0.1)
    await node.cancel()


async def test_idle_time_does_not_make_it_slow() -> None:
    node = Node()
    node.learn(0.1)
    node.clock.advance(3600)
    await node.begin(READ)
    node.clock.advance(0.1)
    node.pace.done(1)
    assert (await node.told())[0] == pytest.approx(0.1)
    await node.cancel()


async def test_a_call_that_comes_too_late_never_reaches_the_shard() -> None:
    node = Node(FakeSearcher([reading(str(n)) for n in range(4)]))
    with pytest.raises(DeadlineExceededError):
        await node.searcher.read(ENCODED, HITS, node.deadline(-1))
    assert not node.inner.read_rows


@given(st.lists(st.tuples(st.sampled_from(range(3)), st.sampled_from(["ends", "fails", "hangs"]))))
def test_every_place_is_released_after_any_outcome(calls: list[tuple[int, str]]) -> None:
    async def scenario() -> None:
        node = Node(most_reads=20)
        for which, fate in calls:
            node.inner.hangs = fate == "hangs"
            node.inner.fails = UnavailableError("gone") if fate == "fails" else None
            try:
                if fate == "hangs":
                    await node.begin(CALLS[which][0])
                else:
                    await CALLS[which][0](node.searcher, node.deadline(10))
            except (OverloadedError, UnavailableError):
                pass
        in_hand = node.registry.get_sample_value("winnow_node_reads_in_hand")
        assert in_hand is not None
        assert in_hand <= 20
        await node.cancel()
        assert node.registry.get_sample_value("winnow_node_reads_in_hand") == 0

    asyncio.run(scenario())
