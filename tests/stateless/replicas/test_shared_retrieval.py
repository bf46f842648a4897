"""Which retrievals are sent in one call, and what becomes of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tenacious import LATER, turn

from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.errors import NotLoadedError, UnavailableError, WinnowError
from winnow.searcher import MAX_CALL_SHARDS, RequestedShard, Retrieved
from winnow.stateless.replicas.shared_retrieval import (
    MAX_CALL_HITS,
    SharedRetrieval,
)

DEPTH = RetrievalDepth(passages=3)


def question() -> EncodedQuestion:
    vector = np.array([1, 0], dtype=np.float32)
    return EncodedQuestion(text="who", token_ids=(1,), vector=vector, bundle_fingerprint="b")


@dataclass
class Node:
    """A node that answers every shard with its number."""

    calls: list[list[RequestedShard]] = field(default_factory=list)
    fails: dict[int, WinnowError] = field(default_factory=dict)
    """Errors of shards."""
    broken: WinnowError | None = None
    """The error of every call."""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.go_on.set()
        self.shared = SharedRetrieval(self._send)

    async def _send(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> list[Retrieved | WinnowError]:
        self.calls.append(list(shards))
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if self.broken is not None:
            raise self.broken
        return [
            self.fails.get(each.shard) or Retrieved((), (), ShardTimings(), sequence=each.shard)
            for each in shards
        ]


async def test_shards_of_one_question_share_a_call_and_get_their_own_results() -> None:
    node, asked = Node(), question()
    depths = [replace(DEPTH, after=shard * 10) for shard in range(3)]
    found = await asyncio.gather(
        *(node.shared.retrieve(n, asked, depth, LATER) for n, depth in enumerate(depths))
    )
    assert [each.sequence for each in found] == [0, 1, 2]
    assert node.calls == [[RequestedShard(0, 0), RequestedShard(1, 10), RequestedShard(2, 20)]]


async def test_what_differs_in_more_than_the_shard_shares_no_call() -> None:
    node, asked = Node(), question()
    await asyncio.gather(
        node.shared.retrieve(0, asked, DEPTH, LATER),
        node.shared.retrieve(1, question(), DEPTH, LATER),
        node.shared.retrieve(2, asked, replace(DEPTH, where="year > 3"), LATER),
        node.shared.retrieve(3, asked, DEPTH, LATER.earlier(1)),
    )
    assert sorted(shard for ((shard, _),) in node.calls) == [0, 1, 2, 3]
    await node.shared.retrieve(4, asked, DEPTH, LATER)
    assert node.calls[-1] == [RequestedShard(4, 0)], "the earlier call was sent already"


async def test_a_call_has_only_so_many_shards() -> None:
    node, asked = Node(), question()
    shards = range(MAX_CALL_SHARDS + 1)
    found = await asyncio.gather(*(node.shared.retrieve(n, asked, DEPTH, LATER) for n in shards))
    assert [each.sequence for each in found] == list(shards)
    assert [len(call) for call in node.calls] == [MAX_CALL_SHARDS, 1]


async def test_a_shard_that_fails_fails_alone() -> None:
    node, asked = Node(fails={1: NotLoadedError("damaged")}), question()
    found = await asyncio.gather(
        *(node.shared.retrieve(n, asked, DEPTH, LATER) for n in range(3)), return_exceptions=True
    )
    assert isinstance(found[1], NotLoadedError)
    assert [each.sequence for each in (found[0], found[2]) if isinstance(each, Retrieved)] == [0, 2]


async def test_the_error_of_the_call_is_that_of_every_shard() -> None:
    node, asked = Node(broken=UnavailableError("gone")), question()
    found = await asyncio.gather(
        *(node.shared.retrieve(n, asked, DEPTH, LATER) for n in range(2)), return_exceptions=True
    )
    assert [str(each) for each in found] == ["gone", "gone"]


async def test_a_call_continues_while_a_shard_of_it_is_needed() -> None:
    node, asked = Node(), question()
    node.go_on.clear()
    tasks = [asyncio.create_task(node.shared.retrieve(n, asked, DEPTH, LATER)) for n in range(2)]
    await node.begun.wait()
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    node.go_on.set()
    assert (await tasks[1]).sequence == 1
    assert not node.cancelled.is_set()


async def test_a_call_ends_once_no_shard_of_it_is_needed() -> None:
    node, asked = Node(), question()
    node.go_on.clear()
    tasks = [asyncio.create_task(node.shared.retrieve(n, asked, DEPTH, LATER)) for n in range(2)]
    await node.begun.wait()
    for task in tasks:
        task.cancel()
    await asyncio.wait_for(node.cancelled.wait(), 60)


async def test_a_retrieval_that_is_cancelled_before_the_call_harms_no_other() -> None:
    node, asked = Node(), question()
    tasks = [asyncio.create_task(node.shared.retrieve(n, asked, DEPTH, LATER)) for n in range(2)]
    await turn()
    tasks[0].cancel()
    assert (await tasks[1]).sequence == 1
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]


async def test_a_call_that_is_cancelled_from_outside_cancels_its_retrievals() -> None:
    """A closed channel cancels its calls."""

    async def send(*_: object) -> list[Retrieved | WinnowError]:
        raise asyncio.CancelledError

    shared, asked = SharedRetrieval(send), question()
    tasks = [asyncio.create_task(shared.retrieve(n, asked, DEPTH, LATER)) for n in range(2)]
    done, _ = await asyncio.wait(tasks, timeout=60)
    assert [task.cancelled() for task in tasks] == [True, True]
    assert len(done) == 2


async def test_a_call_has_only_so_many_hits() -> None:
    node, asked, depth = Node(), question(), RetrievalDepth(passages=1_000)
    shards = range(2 * MAX_CALL_HITS // 1_000)
    await asyncio.gather(*(node.shared.retrieve(n, asked, depth, LATER) for n in shards))
    assert [len(call) for call in node.calls] == [MAX_CALL_HITS // 1_000] * 2
