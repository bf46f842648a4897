"""Calls in flight on a node that leaves, over gRPC with fake shards."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from awaited import AwaitedCount, AwaitedList
from fakes import ENCODED, FINGERPRINT, FakeSearcher, OneShardNode, reading
from prometheus_client import CollectorRegistry
from tenacious import LONG, Change

from winnow.content_node.served_shard import ServedShard
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import NodeReport
from winnow.errors import WinnowError
from winnow.replicas.policy.outliers import OutlierSettings
from winnow.replicas.policy.replicas import ReplicaSettings
from winnow.replicas.routing import ReplicaPolicies
from winnow.rpc.channel import open_channel
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.shard_service.servicer import SERVICE, ShardServicer
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.membership import FrontEncoding
from winnow.stateless.cluster.node import Node, ReplicaAt
from winnow.stateless.cluster.polling import DiscoverySettings
from winnow.stateless.metrics import ClusterMetrics, ReplicaMetrics
from winnow.stateless.replicas.remote import RemoteNode
from winnow.stateless.replicas.replicated import ReplicatedSearcher
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import shard_pb2_grpc

PATIENT = ReplicaPolicies(ReplicaSettings(outliers=OutlierSettings(silence=LONG)))
"""Settings under which a call in flight is not hedged, however long it takes."""


@dataclass
class Replica:
    """A content node over a fake shard."""

    name: str
    fake: FakeSearcher = field(init=False)
    shard: ServedShard = field(default_factory=ServedShard)
    address: str = ""

    def __post_init__(self) -> None:
        self.fake = FakeSearcher([reading(self.name)])
        self.shard.serve(self.fake)
        self.server = Server(
            services=[SERVICE],
            interceptor=CallInterceptor(RpcMetrics(CollectorRegistry()), quiet=True),
        )
        shard_pb2_grpc.add_ShardServiceServicer_to_server(
            ShardServicer(OneShardNode(self.shard), LONG), self.server.grpc
        )

    async def start(self) -> None:
        self.address = f"127.0.0.1:{await self.server.start('127.0.0.1:0')}"


class Listed:
    """A resolver whose addresses a test changes."""

    target = "dns:///nodes:1"

    def __init__(self, addresses: set[str]) -> None:
        self.now = addresses

    async def addresses(self) -> frozenset[str]:
        return frozenset(self.now)


class Front:
    """The parts of a front that discover and call the replicas of one shard."""

    def __init__(self, listed: Listed) -> None:
        self.registry = CollectorRegistry()
        metrics = ReplicaMetrics(self.registry)
        self.served: list[Cluster] = []
        self.closed = AwaitedList[str]()
        self.failed_polls = AwaitedCount()
        self.change = Change()
        self.builder = ClusterBuilder(
            FrontEncoding(FINGERPRINT, 2, "bundle"),
            lambda shard: ReplicatedSearcher(
                shard,
                lambda address: self.nodes.searcher(ReplicaAt(address, shard)),
                PATIENT,
                clock=time.monotonic,
                rng=random.Random(1),
                metrics=metrics,
            ),
            self.served.append,
            metrics=ClusterMetrics(self.registry),
        )
        self.nodes = Discovery(
            [listed],
            self._open,
            self._update,
            settings=DiscoverySettings(resolve_every=0.01, poll_every=0.01, poll_timeout=LONG),
            rng=random.Random(1),
        )

    def _update(self) -> None:
        self.builder.update(self.nodes.present_replicas(), self.nodes.nodes.values())
        self.change.tell()

    def _open(self, address: str) -> Node:
        channel = open_channel(address)
        remote = RemoteNode(channel, address)
        report = remote.report

        async def poll(deadline: Deadline) -> NodeReport:
            try:
                return await report(deadline)
            except WinnowError:
                self.failed_polls.add()
                raise

        remote.report = poll  # type: ignore[method-assign]

        async def close() -> None:
            self.closed.append(address)
            await channel.close()

        return Node(address, remote, close, busy=lambda: remote.calls > 0)

    async def ask(self) -> str:
        found = (
            await self.served[0]
            .searchers[0]
            .retrieve(ENCODED, RetrievalDepth(passages=1), Deadline.after(LONG))
        )
        return found.hits[0].passage_id

    def retries(self) -> float:
        labels = {"shard": "0", "result": "sent"}
        return self.registry.get_sample_value("winnow_front_retries_total", labels) or 0.0


@dataclass
class Scene:
    """Two replicas; the first has a question in flight, sent before the second was listed."""

    leaving: Replica
    staying: Replica
    listed: Listed
    front: Front
    asked: "asyncio.Task[str]"

    @property
    def left_out(self) -> bool:
        return set(self.front.nodes.present_replicas()) == {ReplicaAt(self.staying.address, 0)}


@contextlib.asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    leaving, staying = Replica("leaving"), Replica("staying")
    for replica in (leaving, staying):
        await replica.start()
    listed = Listed({leaving.address})
    front = Front(listed)
    looking = asyncio.create_task(front.nodes.run())
    try:
        await asyncio.wait_for(front.builder.wait_until_serving(LONG), LONG)
        asked = await in_hand(front, leaving)
        listed.now = {leaving.address, staying.address}
        await front.change.when(lambda: len(front.nodes.present_replicas()) == 2)
        yield Scene(leaving, staying, listed, front, asked)
    finally:
        looking.cancel()
        await asyncio.wait([looking])
        for replica in (leaving, staying):
            await replica.server.drain(0)


async def in_hand(front: Front, replica: Replica) -> "asyncio.Task[str]":
    """Asks a question; returns it once the only replica has begun to answer."""
    fake, go_on = replica.fake, replica.fake.go_on
    retrieve = fake.retrieve

    async def slowly(
        question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> object:
        fake.hanging.set()
        await go_on.wait()
        return await retrieve(question, depth, deadline)

    fake.retrieve = slowly  # type: ignore[method-assign, assignment]
    asked = asyncio.create_task(front.ask())
    await asyncio.wait_for(fake.hanging.wait(), LONG)
    return asked


@pytest.mark.parametrize("listed", [True, False])
async def test_a_node_that_announces_its_leaving_answers_calls_in_flight(listed: bool) -> None:
    """Also if the name service no longer lists the node."""
    async with scene() as now:
        now.leaving.shard.start_leaving()
        if not listed:
            now.listed.now = {now.staying.address}
        await now.front.change.when(lambda: now.left_out)
        assert await asyncio.wait_for(now.front.ask(), LONG) == "staying"
        now.leaving.fake.go_on.set()
        assert await asyncio.wait_for(now.asked, LONG) == "leaving"
        assert now.front.retries() == 0
        if not listed:
            await now.front.closed.holds(1)
            assert now.front.closed == [now.leaving.address]


async def test_a_draining_node_answers_calls_in_flight() -> None:
    """A draining node accepts no new connection, so every poll of it fails."""
    async with scene() as now:
        draining = asyncio.create_task(now.leaving.server.drain(LONG))
        await now.front.change.when(lambda: now.left_out)
        await now.front.failed_polls.reaches(now.front.failed_polls.value + 4)
        now.leaving.fake.go_on.set()
        assert await asyncio.wait_for(now.asked, LONG) == "leaving"
        assert now.front.retries() == 0
        await asyncio.wait_for(draining, LONG)


async def test_calls_in_flight_on_a_dead_node_are_retried_immediately() -> None:
    async with scene() as now:
        await now.leaving.server.grpc.stop(None)
        assert await asyncio.wait_for(now.asked, LONG) == "staying"
        assert now.front.retries() == 1
