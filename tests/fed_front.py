"""A front that takes writes: the real core and encoder over fake shards."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from awaited import AwaitedCount, AwaitedList
from fakes import FakeShardWriter, shard_info
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle
from winnow.domain.shard import ShardInfo, shard_of
from winnow.domain.write import EncodedPassage, Write
from winnow.inference.fair_threads import FairThreads
from winnow.inference.options import Runtime
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.stateless.cluster.membership import ClusterView, IndexIdentity
from winnow.stateless.cluster.node import ReplicaAt, ReplicaInfos
from winnow.stateless.feed.admission import FeedAdmission
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.encoding import FeedEncoder, PreparedPut
from winnow.stateless.feed.fed_index import FedIndex, only_fed
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.servicer import (
    MAX_MESSAGE_BYTES,
    MAX_PENDING_BYTES,
    SERVICE,
    FeedServicer,
    reject_without_room,
)
from winnow.stateless.feed.storing import WriteRouter
from winnow.stateless.feed.unchanged import UnchangedPuts
from winnow.stateless.feed.writers import OpenWriter, Writers
from winnow.telemetry.metrics import RpcMetrics

INDEX = IndexIdentity("fake-index", 2, 384)


def node_info(shard: int, log_id: str) -> ShardInfo:
    return shard_info(shard, index_id="fake-index", passages=1, dimension=384, log_id=log_id)


class CountingEncoder(FeedEncoder):
    """A real encoder that counts the passages it encodes."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(bundle, Runtime.AUTO, threads=2, nice=0)
        self.encoded = AwaitedCount()

    async def encode(
        self, puts: Sequence[PreparedPut], client: str = "", token_vectors: str = ""
    ) -> list[Write]:
        found = await super().encode(puts, client, token_vectors)
        self.encoded.add(len(found))
        return found


class FedFront:
    """The feeding side of a front, over two shards with one fake node each."""

    def __init__(self, bundle: Bundle, most: int = 1_000, deadline: float = 30.0) -> None:
        self.registry = CollectorRegistry()
        self.nodes = {f"node-{shard}:1": FakeShardWriter() for shard in range(2)}
        self.infos = {
            address: node_info(int(address[5]), f"log {address}") for address in self.nodes
        }
        self.view = ClusterView(INDEX, {0: ("node-0:1",), 1: ("node-1:1",)})
        self.closed: list[str] = []
        self.rests: list[float] = []
        self.clock = ManualClock()
        """Advances only during the pauses between retries."""
        self.noticed = AwaitedList[tuple[int, int]]()
        """Shard and last durable write of each notice to the answering side."""
        metrics = FeedMetrics(self.registry)
        self.encoder = CountingEncoder(bundle)
        writers = Writers(lambda: self.view, self._present, self._open)
        self.admission = FeedAdmission(most, metrics)
        self.storing = WriteRouter(writers, metrics, self._rest, self._notice)
        self.aside = FairThreads(1, "fed")
        self.core = FeedCore(
            encoder=self.encoder,
            unchanged=UnchangedPuts(writers, self._notice),
            router=self.storing,
            admission=self.admission,
            metrics=metrics,
            prepare_thread=self.aside,
            token_vectors=lambda: self.token_vectors,
        )
        self.token_vectors = ""
        """Fingerprint of the token vectors that the shards use."""
        self._deadline = deadline

    def _present(self) -> ReplicaInfos:
        return {ReplicaAt(address, info.shard): info for address, info in self.infos.items()}

    @property
    def shards(self) -> tuple[FakeShardWriter, FakeShardWriter]:
        return self.nodes["node-0:1"], self.nodes["node-1:1"]

    def shard(self, passage_id: str) -> FakeShardWriter:
        """Returns the shard of a passage."""
        return self.shards[shard_of(passage_id, 2)]

    @property
    def encoded(self) -> int:
        """Number of passages encoded so far."""
        return self.encoder.encoded.value

    @property
    def passages(self) -> dict[str, EncodedPassage]:
        """All stored passages of both shards, by id."""
        return {name: each for shard in self.shards for name, each in shard.passages.items()}

    def sample(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0

    @contextlib.asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncIterator[str]:
        """Serves by gRPC; yields HOST:PORT."""
        boundary = CallInterceptor(RpcMetrics(self.registry))
        door = reject_without_room(self.admission)
        server = Server(
            services=[SERVICE],
            interceptor=boundary,
            max_message_bytes=MAX_MESSAGE_BYTES,
            max_pending_bytes=MAX_PENDING_BYTES,
            reject=door,
        )
        servicer = FeedServicer(only_fed(FedIndex(self.core)), self._deadline)
        add(servicer, server)
        port = await server.start(f"127.0.0.1:{port}")
        await server.set_serving(True)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            await server.drain(0)

    def close(self) -> None:
        self.encoder.close()
        self.aside.close()

    def _notice(self, shard: int, sequence: int, _log_id: str) -> None:
        self.noticed.append((shard, sequence))

    def _open(self, address: str, index: IndexIdentity, shard: int) -> OpenWriter:
        async def close() -> None:
            self.closed.append(address)

        return OpenWriter(self.nodes[address], lambda: False, close)

    async def _rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.clock.advance(seconds)
        await asyncio.sleep(0)


def add(servicer: Any, server: Server) -> None:
    from winnow.v1 import feed_pb2_grpc

    feed_pb2_grpc.add_FeedServiceServicer_to_server(servicer, server.grpc)


def ids_of(shard: int, count: int) -> Sequence[str]:
    """Returns `count` passage ids that belong to `shard` of two shards."""
    found = [str(number) for number in range(100 * count) if shard_of(str(number), 2) == shard]
    return found[:count]
