"""Questions over nodes that fail, hang, refuse and lose shards at random.

Time is virtual: sleeps take none of the real time, and order events exactly.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes import ENCODED, FakeSearcher
from prometheus_client import CollectorRegistry
from virtual_loop import VirtualLoop

from winnow.candidates.joint import join
from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth, WaitPolicy
from winnow.domain.shard import NodeReport
from winnow.errors import (
    DeadlineExceededError,
    NotLoadedError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.replicas.routing import ReplicaPolicies
from winnow.searcher import RequestedShard, Retrieved, Searcher
from winnow.stateless.answer.choose import best_overall
from winnow.stateless.answer.scatter import scatter
from winnow.stateless.metrics import ReplicaMetrics
from winnow.stateless.policy.waiting import AdaptiveTimeout
from winnow.stateless.replicas.joint import JointCalls
from winnow.stateless.replicas.node_calls import NodeCalls
from winnow.stateless.replicas.replicated import ReplicatedSearcher

SHARDS = range(6)
DEPTH = RetrievalDepth(passages=4)
ERRORS: dict[str, WinnowError] = {
    "fails": UnavailableError("connection refused"),
    "is full": OverloadedError("too many retrievals"),
}
FAULTS = ("", "hangs", "is slow", "has damaged shards", *ERRORS)


def found_alone(shard: int) -> Retrieved:
    """The result of a shard alone: up to eleven passages, many of them at equal distances."""
    rng = random.Random(shard)
    distances = sorted(rng.randrange(6) / 4 for _ in range(rng.randrange(12)))
    hits = (
        Hit(row=n, passage_id=f"{shard}-{n}", distance=distance, hybrid_distance=distance)
        for n, distance in enumerate(distances)
    )
    return Retrieved(tuple(hits), tuple(distances[: DEPTH.passages]), ShardTimings(retrieve=0.01))


class Node:
    """A node with one fault at a time."""

    def __init__(self, rng: random.Random) -> None:
        self.shards = [shard for shard in SHARDS if rng.random() < 0.7]
        self.fault, self.running, self._rng = "", 0, rng

    async def report(self, deadline: Deadline) -> NodeReport:
        raise AssertionError("the front asks for no report here")

    def searcher(self, shard: int | None) -> Searcher:
        assert shard is not None
        return OneOf(self, shard)

    async def retrieve(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> list[Retrieved | Exception]:
        self.running += 1
        try:
            await self._work(deadline)
        finally:
            self.running -= 1
        return join([self._result(each.shard) for each in shards], depth)

    async def _work(self, deadline: Deadline) -> None:
        seconds = 0.01 + self._rng.expovariate(200) + (self.fault == "is slow") * self._rng.random()
        if self.fault == "hangs" or seconds > deadline.left():
            await asyncio.sleep(deadline.left())
            raise DeadlineExceededError("no reply")
        await asyncio.sleep(seconds)
        if self.fault in ERRORS:
            raise ERRORS[self.fault]

    def _result(self, shard: int) -> Retrieved | Exception:
        is_damaged = self.fault == "has damaged shards" and self._rng.random() < 0.3
        return NotLoadedError("damaged") if is_damaged else found_alone(shard)


class OneOf(FakeSearcher):
    """A shard of a node."""

    def __init__(self, node: Node, number: int) -> None:
        super().__init__([])
        self.node, self.number = node, number

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        shards = (RequestedShard(self.number),)
        (result,) = await self.node.retrieve(question, depth, shards, deadline)
        if isinstance(result, Exception):
            raise result
        return result


class Front:
    """A front that retrieves from nodes whose shards overlap."""

    def __init__(self, rng: random.Random, loop: asyncio.AbstractEventLoop) -> None:
        self.clock, policies = loop.time, ReplicaPolicies()
        self.nodes = {str(n): Node(rng) for n in range(3)}
        self.nodes["0"].shards = list(SHARDS)
        metrics, calls = ReplicaMetrics(CollectorRegistry()), NodeCalls(5.0, self.clock, rng)
        self.shards = {
            shard: ReplicatedSearcher(
                shard,
                lambda address, shard=shard: self.nodes[address].searcher(shard),  # type: ignore[misc]
                policies,
                clock=self.clock,
                rng=rng,
                metrics=metrics,
                joint_calls=calls.running,
            )
            for shard in SHARDS
        }
        for shard, searcher in self.shards.items():
            searcher.update([name for name, node in self.nodes.items() if shard in node.shards])
        self.joint = JointCalls(
            self.shards, self.nodes.__getitem__, calls, policies=policies, clock=self.clock
        )

    async def ask(self) -> int:
        """Asks a question; returns the number of shards that answered."""
        question, deadline = replace(ENCODED), Deadline.after(1.0, self.clock)
        with self.joint.plan_retrieval(question, DEPTH, deadline, {}) as retrieval:
            alone = {
                shard: self.shards[shard].retrieve(question, DEPTH, deadline)
                for shard in retrieval.alone
            }
            timeout = AdaptiveTimeout(WaitPolicy(), len(SHARDS), deadline)
            gathered = await scatter(alone, timeout, joint=retrieval.calls())
        assert deadline.left() > -0.001
        assert sorted([*gathered.results, *gathered.failures]) == list(SHARDS)
        expected = {shard: found_alone(shard) for shard in gathered.results}
        assert best_overall(gathered.results, DEPTH) == best_overall(expected, DEPTH)
        return len(gathered.results)

    def running(self) -> int:
        """Number of calls that run, or that are still counted."""
        replicas = (
            replica
            for searcher in self.shards.values()
            for replica in searcher._pool.replicas.by_address.values()
        )
        nodes = sum(node.running for node in self.nodes.values())
        return nodes + sum(replica.load for replica in replicas) + len(self.joint._running)


@pytest.mark.parametrize("seed", range(5))
def test_faults_change_no_answer_but_its_coverage_and_leave_no_call_behind(seed: int) -> None:
    failed: list[object] = []

    async def ask_often() -> None:
        front = Front(rng, asyncio.get_running_loop())
        answered = 0
        for _ in range(60):
            for node in front.nodes.values():
                node.fault = rng.choice(FAULTS) if rng.random() < 0.3 else ""
            asked = [asyncio.create_task(front.ask()) for _ in range(3)]
            cancelled = asyncio.create_task(front.ask())
            await asyncio.sleep(rng.random() / 20)
            cancelled.cancel()
            answered += sum(await asyncio.gather(*asked))
            await asyncio.sleep(0.001)  # cancelled calls end
            assert front.running() == 0
            assert asyncio.all_tasks() == {asyncio.current_task()}
            await asyncio.sleep(rng.random())
        assert answered > 0.8 * 60 * 3 * len(SHARDS)

    rng, loop = random.Random(seed), VirtualLoop()
    loop.set_exception_handler(lambda _, context: failed.append(context))
    try:
        loop.run_until_complete(ask_often())
    finally:
        loop.close()
    assert not failed
