"""Retrieving from several shards of a process for one call."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from fakes import FoundBefore
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.candidates.limits import CandidateLimits
from winnow.content_node.admission import NodeLoad
from winnow.content_node.joint_retrieval import JointRetrieval
from winnow.content_node.local_shard import Retrieval
from winnow.content_node.metrics import NodeMetrics
from winnow.deadline import Clock, Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import RetrievalDepth
from winnow.errors import DeadlineExceededError, NotLoadedError, OverloadedError, StoppedError
from winnow.inference.stop_signal import StopSignal
from winnow.policy.pace import Pace
from winnow.reading.pool import ReaderPool
from winnow.searcher import Retrieved

DEPTH = RetrievalDepth(passages=1)


class Node:
    """A node with two threads that admits one retrieval at a time."""

    def __init__(self) -> None:
        metrics = NodeMetrics(CollectorRegistry())
        self.pool = ReaderPool(2, 2, metrics)
        pace = Pace(1.0, time.monotonic)
        load = NodeLoad(1, pace=pace, clock=time.monotonic, metrics=metrics)
        self.joint = JointRetrieval(self.pool, load, metrics)

    async def run(
        self, *retrievals: Retrieval, seconds: float = LONG, clock: Clock = time.monotonic
    ) -> list[Retrieved | Exception]:
        async def prepare(retrieval: Retrieval) -> Retrieval:
            return retrieval

        shards = [lambda each=each: prepare(each) for each in retrievals]
        return await self.joint.run(shards, DEPTH, Deadline.after(seconds, clock), "")


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.pool.close()


def finds(distance: float) -> Retrieval:
    """A retrieval that finds one passage at a distance."""
    hit = Hit(row=0, passage_id=str(distance), distance=distance, hybrid_distance=distance)
    found = Retrieved((hit,), (distance,), ShardTimings(retrieve=0.001), sequence=int(distance))
    return lambda _stop: FoundBefore(found)


class Hanging:
    """A retrieval that ends when it is stopped."""

    def __init__(self) -> None:
        self.began, self.stopped = threading.Event(), threading.Event()

    def __call__(self, stop: StopSignal) -> FoundBefore:
        self.began.set()
        with stop.on_stop(self.stopped.set):
            self.stopped.wait(LONG)
        raise StoppedError


def hits(result: Retrieved | Exception) -> list[str]:
    assert isinstance(result, Retrieved)
    return [hit.passage_id for hit in result.hits]


async def test_shards_together_name_the_best_passages_of_all(node: Node) -> None:
    results = await node.run(finds(3.0), finds(1.0), finds(2.0))
    assert list(map(hits, results)) == [[], ["1.0"], []]
    assert [r.sequence for r in results if isinstance(r, Retrieved)] == [3, 1, 2]


async def test_a_shard_that_fails_leaves_the_others_in_their_places(node: Node) -> None:
    def fail(_: StopSignal) -> FoundBefore:
        raise NotLoadedError("damaged")

    first, second, third = await node.run(finds(2.0), fail, finds(1.0))
    assert isinstance(second, NotLoadedError)
    assert (hits(first), hits(third)) == ([], ["1.0"])


async def test_a_shard_that_fails_while_its_candidates_are_ranked_leaves_the_others(
    node: Node,
) -> None:
    class Unrankable(FoundBefore):
        def rank(self, _limits: CandidateLimits, _stop: StopSignal) -> Retrieved:
            raise NotLoadedError("damaged")

    found = Retrieved((), (3.0,), ShardTimings())
    first, second = await node.run(finds(1.0), lambda _stop: Unrankable(found))
    assert hits(first) == ["1.0"]
    assert isinstance(second, NotLoadedError)


async def test_a_call_counts_as_one_retrieval_for_all_its_shards(node: Node) -> None:
    hanging = Hanging()
    running = asyncio.create_task(node.run(hanging, finds(1.0), finds(2.0)))
    assert await asyncio.to_thread(hanging.began.wait, LONG)
    with pytest.raises(OverloadedError, match="1 retrieval is running"):
        await node.run(finds(1.0))
    running.cancel()
    assert await asyncio.to_thread(hanging.stopped.wait, LONG)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert hits((await node.run(finds(1.0)))[0]) == ["1.0"]


async def test_a_call_after_its_deadline_retrieves_nothing(node: Node) -> None:
    results = await node.run(finds(1.0), finds(2.0), seconds=0)
    assert list(map(type, results)) == [DeadlineExceededError] * 2


async def test_a_shard_that_hangs_is_late_and_the_others_are_answered(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, loop = ManualClock(), asyncio.get_running_loop()
    monkeypatch.setattr(loop, "time", clock)

    def find_last(_: StopSignal) -> FoundBefore:
        """Runs when all but the hanging shard are done; then there is only time to rank."""
        clock.advance(LONG - 0.1)
        loop.call_soon_threadsafe(lambda: None)  # so that the loop looks at its clock
        raise NotLoadedError("damaged")

    late, found, _ = await node.run(Hanging(), finds(1.0), find_last, seconds=LONG, clock=clock)
    assert isinstance(late, DeadlineExceededError)
    assert hits(found) == ["1.0"]
