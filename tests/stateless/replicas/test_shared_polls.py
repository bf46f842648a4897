"""The indexes of a front share the polls of a node, and each learns as soon as if it polled alone."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import pytest
from fakes import FakeSearcher, OneShardNode, joint_retrieval, reading, shard_info
from listening import listening, new_server
from tenacious import LONG, turn
from virtual_loop import in_virtual_time

from winnow.content_node.served_indexes import ServedIndexes
from winnow.content_node.served_shard import ServedShard
from winnow.content_node.served_shards import ServedShards
from winnow.deadline import Deadline
from winnow.domain.shard import NodeReport, ShardInfo
from winnow.errors import LeavingError, NotLoadedError, UnavailableError, WinnowError
from winnow.rpc.channel import open_channel
from winnow.searcher import MAX_POLLED_INDEXES
from winnow.shard_service.servicer import SERVICE, ShardServicer
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.node import Node
from winnow.stateless.cluster.polling import DiscoverySettings
from winnow.stateless.replicas.polls_remote import RemotePolls
from winnow.stateless.replicas.remote import RemoteNode
from winnow.stateless.replicas.shared_polls import IndexPolls, SharedPolls
from winnow.v1 import shard_pb2, shard_pb2_grpc

SETTINGS = DiscoverySettings(poll_every=0.5, poll_idle=5.0, poll_timeout=1.0)
TRAVEL = 0.01
"""Seconds from the start of a poll until the node reads its state, and from then to the reply."""


class OneAddress:
    """A target with one address."""

    target = "a"

    async def addresses(self) -> frozenset[str]:
        return frozenset("a")


class PolledFront:
    """A front whose indexes share the polls of one node."""

    def __init__(self, count: int) -> None:
        self.polls = SharedPolls[int](self._fetch, asyncio.get_running_loop().time)
        self.polled: list[list[int]] = []
        """The indexes of each poll."""
        self.fails: WinnowError | Exception | None = None
        self.known: dict[int, float] = {}
        """When the node read the state that an index knows."""
        self.ages: list[float] = []
        """How old the known state of an index was when it got a newer one."""
        self.indexes = [self._discovery(number) for number in range(count)]

    def _discovery(self, number: int) -> Discovery:
        loop = asyncio.get_running_loop()

        def open_node(address: str) -> Node:
            async def close() -> None:
                member.leave()

            member = self.polls.join(number)
            return Node(address, OneShardNode(FakeSearcher([])), close, polls=member)

        return Discovery(
            [OneAddress()],
            open_node,
            lambda: self._learn(number),
            settings=SETTINGS,
            rng=random.Random(number),
            clock=loop.time,
        )

    async def _fetch(self, indexes: Sequence[int], _: Deadline) -> list[NodeReport]:
        self.polled.append(list(indexes))
        await asyncio.sleep(TRAVEL)
        read_at = asyncio.get_running_loop().time()
        await asyncio.sleep(TRAVEL)
        if self.fails is not None:
            raise self.fails
        # the sequence number tells when the node replied, in milliseconds
        return [NodeReport((shard_info(0, 1, sequence=int(read_at * 1e3)),)) for _ in indexes]

    def _learn(self, number: int) -> None:
        loop, node = asyncio.get_running_loop(), self.indexes[number].nodes["a"]
        if node.infos and node.error is None:
            if number in self.known:
                self.ages.append(loop.time() - self.known[number])
            self.known[number] = node.infos[0].sequence / 1e3

    @contextlib.asynccontextmanager
    async def running(self, busy: Sequence[int]) -> AsyncIterator[None]:
        """Polls, while requests to the `busy` indexes arrive."""

        async def request() -> None:
            while True:
                for number in busy:
                    self.indexes[number].record_request()
                await asyncio.sleep(1.0)

        tasks = [asyncio.create_task(each.run()) for each in self.indexes]
        tasks.append(asyncio.create_task(request()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@in_virtual_time
async def test_a_hundred_busy_indexes_poll_a_node_hardly_more_often_than_one() -> None:
    """Each learns of a write within half a second, 20 % jitter, and the travel of its poll."""
    front = PolledFront(100)
    async with front.running(busy=range(100)):
        await asyncio.sleep(1.0)
        front.polled.clear()
        front.ages.clear()
        await asyncio.sleep(20.0)
    assert 20 / 0.6 <= len(front.polled) <= 20 / 0.4
    assert max(front.ages) <= 0.6 + 4 * TRAVEL
    assert len(front.ages) > 100 * 20 / 0.7


@in_virtual_time
async def test_idle_indexes_are_polled_as_seldom_as_alone() -> None:
    front = PolledFront(10)
    async with front.running(busy=[0]):
        await asyncio.sleep(1.0)
        front.polled.clear()
        await asyncio.sleep(60.0)
    polls = [sum(number in each for each in front.polled) for number in range(10)]
    assert 60 / 0.6 <= polls[0] <= len(front.polled) <= 60 / 0.4
    assert all(60 / 6.1 <= count <= 60 / 4 + 1 for count in polls[1:])


@in_virtual_time
async def test_the_first_request_after_a_quiet_time_polls_at_once() -> None:
    front = PolledFront(3)
    async with front.running(busy=[]):
        await asyncio.sleep(20.1)
        front.polled.clear()
        front.indexes[2].record_request()
        await asyncio.sleep(2 * TRAVEL + 0.001)
        assert [2 in each for each in front.polled] == [True]


@in_virtual_time
@pytest.mark.parametrize("failure", [UnavailableError("a: refused"), ValueError("nonsense")])
async def test_all_indexes_learn_of_a_failed_poll_and_of_the_return(failure: Exception) -> None:
    front = PolledFront(5)
    async with front.running(busy=range(5)):
        await asyncio.sleep(2.0)
        assert all(len(each.present_replicas()) == 1 for each in front.indexes)
        front.fails = failure
        await asyncio.sleep(2.0)
        assert not any(each.present_replicas() for each in front.indexes)
        front.fails = None
        await asyncio.sleep(2.0)
        assert all(len(each.present_replicas()) == 1 for each in front.indexes)


@in_virtual_time
async def test_an_index_that_is_closed_during_its_poll_ends_no_other_poll() -> None:
    front = PolledFront(2)
    members = [front.polls.join(number) for number in range(2)]
    received: list[NodeReport | WinnowError] = []
    for member in members:
        member.follow(lambda result, _: received.append(result), lambda: True)
    first, other = (asyncio.create_task(each.poll(Deadline.after(LONG))) for each in members)
    await turn()
    first.cancel()
    members[0].leave()
    await other
    assert len(received) == 1
    assert front.polled == [[0, 1]]


@in_virtual_time
async def test_a_poll_has_at_most_as_many_indexes_as_a_node_accepts() -> None:
    front = PolledFront(0)
    members = [front.polls.join(number) for number in range(MAX_POLLED_INDEXES + 5)]
    for member in members:
        member.follow(lambda _result, _started: None, lambda: True)
    await asyncio.gather(*(each.poll(Deadline.after(LONG)) for each in members))
    assert [len(each) for each in front.polled] == [MAX_POLLED_INDEXES, 5]


class TwoIndexes:
    """A content node over real gRPC, with the named indexes `one` and `two`."""

    def __init__(self) -> None:
        self.shards = {name: ServedShard(0) for name in ("one", "two")}
        self.calls = 0
        nothing = ServedShards(joint=joint_retrieval())
        self.served = ServedIndexes(ServedShards(joint=joint_retrieval()), nothing)
        for name, shard in self.shards.items():
            shard.serve(FakeSearcher([reading(name)], index_id=name))
            self.served.add(name, ServedShards([shard], joint=joint_retrieval()))

    def of_index(self, index_id: str) -> ServedShards:
        return self.served.of_index(index_id)


class CountingServicer(ShardServicer):
    """Counts the calls, and ignores the indexes of a poll if it `is_old`."""

    calls, is_old = 0, False

    async def ListShards(
        self, request: shard_pb2.ListShardsRequest, context: Any
    ) -> shard_pb2.ListShardsResponse:
        self.calls += 1
        if self.is_old:
            request.ClearField("index_ids")
        return await super().ListShards(request, context)


class PolledIndexes:
    """The indexes `one`, `two` and `missing` at a front that polls the node."""

    def __init__(self, node: TwoIndexes) -> None:
        self.servicer = CountingServicer(node.of_index(""), LONG, node.of_index)
        self.results: dict[str, NodeReport | WinnowError] = {}
        """The last result of each index."""
        self._members: list[IndexPolls[RemoteNode]] = []

    @contextlib.asynccontextmanager
    async def polling(self) -> AsyncIterator[None]:
        server = new_server(SERVICE)
        shard_pb2_grpc.add_ShardServiceServicer_to_server(self.servicer, server.grpc)
        async with listening(server) as address, open_channel(address) as channel:
            polls = RemotePolls(open_channel)
            for name in ("one", "two", "missing"):
                member = polls.node(address).polls.join(RemoteNode(channel, address, name))
                member.follow(partial(self._receive, name), lambda: True)
                self._members.append(member)
            yield
            for member in self._members:
                await polls.leave(address, member)

    async def poll(self) -> None:
        await self._members[0].poll(Deadline.after(LONG))

    def _receive(self, name: str, result: NodeReport | WinnowError, _started: float) -> None:
        self.results[name] = result

    def passages(self, name: str) -> list[int]:
        """The numbers of passages of the shards of an index."""
        report = self.results[name]
        assert isinstance(report, NodeReport)
        return [info.passages for info in report.infos]


async def test_an_index_that_cannot_record_a_result_stops_no_other_index() -> None:
    async def fetch(indexes: Sequence[int], _: Deadline) -> list[NodeReport]:
        return [NodeReport(()) for _ in indexes]

    def fail(_result: NodeReport | WinnowError, _started: float) -> None:
        raise ValueError("nonsense")

    polls, received = SharedPolls[int](fetch), []
    members = [polls.join(number) for number in range(3)]
    for member in members:
        member.follow(lambda result, _: received.append(result), lambda: True)
    members[1].follow(fail, lambda: True)
    await members[0].poll(Deadline.after(LONG))
    assert received == [NodeReport(())] * 2


@pytest.mark.parametrize("reports", [0, 2, 4])
async def test_a_reply_with_a_wrong_number_of_reports_is_an_error_of_all_indexes(
    reports: int,
) -> None:
    async def fetch(indexes: Sequence[int], _: Deadline) -> list[NodeReport]:
        return [NodeReport(())] * reports

    polls, received = SharedPolls[int](fetch), []
    members = [polls.join(number) for number in range(3)]
    for member in members:
        member.follow(lambda result, _: received.append(result), lambda: True)
    await members[0].poll(Deadline.after(LONG))
    assert [type(each) for each in received] == [WinnowError] * 3
    assert f"it has {reports} reports, but the call listed 3 indexes" in str(received[0])


async def test_a_call_lists_the_shards_of_all_indexes_and_the_errors_of_those_that_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = TwoIndexes()
    indexes = PolledIndexes(node)
    async with indexes.polling():
        await indexes.poll()
        assert indexes.servicer.calls == 1
        assert [indexes.passages(each) for each in ("one", "two", "missing")] == [[1], [1], []]
        node.shards["one"].start_leaving()
        node.shards["two"].withdraw("its file is gone")
        await indexes.poll()
        assert isinstance(indexes.results["one"], LeavingError)
        two = indexes.results["two"]
        assert isinstance(two, NodeReport)
        assert [type(fault.error) for fault in two.faults] == [NotLoadedError]
        node.shards["one"].fail("broken")
        node.shards["one"]._is_leaving = False
        monkeypatch.setattr(node.shards["two"], "info", _unexpected)
        await indexes.poll()
        assert isinstance(indexes.results["one"], NodeReport)
        assert type(indexes.results["two"]) is WinnowError


async def test_a_node_of_an_older_version_is_polled_for_each_index_alone() -> None:
    indexes = PolledIndexes(TwoIndexes())
    indexes.servicer.is_old = True
    async with indexes.polling():
        await indexes.poll()
        assert indexes.servicer.calls == 4
        assert [indexes.passages(each) for each in ("one", "two", "missing")] == [[1], [1], []]


async def test_a_node_that_cannot_be_reached_is_unavailable_to_all_indexes() -> None:
    node = TwoIndexes()
    indexes = PolledIndexes(node)
    async with indexes.polling():
        member = indexes._members[0]
        polls = RemotePolls(open_channel)
        lost = polls.node("127.0.0.1:1").polls.join(member.index)
        received: list[NodeReport | WinnowError] = []
        lost.follow(lambda result, _: received.append(result), lambda: True)
        await lost.poll(Deadline.after(LONG))
        assert [type(each) for each in received] == [UnavailableError]
        await polls.leave("127.0.0.1:1", lost)


async def _unexpected(_: Deadline) -> ShardInfo:
    raise ValueError("nonsense")
