"""Serves any number of fake shards in one process, which repeat the replies of a real shard.

To a front node they look like content nodes. So a machine can measure the cost of a hundred shards
that it could not run.
"""

import asyncio
import multiprocessing
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import grpc

from winnow.candidates.joint import without_outranked
from winnow.cli.units.disturbance import Disturbance
from winnow.convert import shard as convert
from winnow.errors import UnavailableError
from winnow.v1 import shard_pb2, shard_pb2_grpc

_START_TIMEOUT = 60.0
"""Maximum seconds until the process has started."""


@dataclass(frozen=True, slots=True)
class RecordedReplies:
    """Recorded replies of a shard, as serialized messages."""

    info: bytes
    retrieved: bytes
    read: bytes


class FakeNode(shard_pb2_grpc.ShardServiceServicer):
    """A fake content node, whose shards return recorded replies."""

    def __init__(
        self,
        replies: RecordedReplies,
        own: Sequence[int],
        shards: int,
        rng: random.Random,
        *,
        disturb: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`own`: numbers of the shards of this node; `shards`: number of all shards.

        `disturb` is awaited before each reply to a read.
        """
        info = shard_pb2.GetShardInfoResponse.FromString(replies.info)
        info.shards, info.index_passages = shards, info.passages * shards
        self._infos = []
        for shard in own:
            info.shard = shard
            self._infos.append(shard_pb2.GetShardInfoResponse.FromString(info.SerializeToString()))
        self._replies, self._rng, self._disturb = replies, rng, disturb

    async def ListShards(  # noqa: N802
        self, request: shard_pb2.ListShardsRequest, context: Any
    ) -> shard_pb2.ListShardsResponse:
        return shard_pb2.ListShardsResponse(shards=self._infos)

    async def GetShardInfo(  # noqa: N802
        self, request: shard_pb2.GetShardInfoRequest, context: Any
    ) -> shard_pb2.GetShardInfoResponse:
        return self._infos[0]

    async def Retrieve(  # noqa: N802
        self, request: shard_pb2.RetrieveRequest, context: Any
    ) -> shard_pb2.RetrieveResponse:
        return self._retrieved()

    async def RetrieveFromShards(  # noqa: N802
        self, request: shard_pb2.RetrieveFromShardsRequest, context: Any
    ) -> shard_pb2.RetrieveFromShardsResponse:
        found = [convert.retrieved_of_message(self._retrieved()) for _ in request.shards]
        results = without_outranked(found, convert.depth_of_message(request.request))
        return shard_pb2.RetrieveFromShardsResponse(results=map(convert.result_to_message, results))

    def _retrieved(self) -> shard_pb2.RetrieveResponse:
        """The recorded hits. A random shift of all distances makes shards differ."""
        response = shard_pb2.RetrieveResponse.FromString(self._replies.retrieved)
        shift = self._rng.uniform(-0.1, 0.1)
        for hit in response.hits:
            hit.distance += shift
            hit.hybrid_distance += shift
        distances = [distance + shift for distance in response.candidate_distances]
        response.candidate_distances[:] = distances
        return response

    async def Search(  # noqa: N802
        self, request: shard_pb2.SearchRequest, context: Any
    ) -> shard_pb2.SearchResponse:
        """Returns the recorded readings."""
        return shard_pb2.SearchResponse.FromString(self._replies.read)

    async def Read(  # noqa: N802
        self, request: shard_pb2.ReadRequest, context: Any
    ) -> shard_pb2.ReadResponse:
        """Returns the first recorded reading for every hit."""
        if self._disturb is not None:
            await self._disturb()
        response = shard_pb2.ReadResponse.FromString(self._replies.read)
        first = response.readings[0]
        del response.readings[:]
        response.readings.extend([first] * len(request.hits))
        return response


@contextmanager
def fake_shards(
    replies: RecordedReplies, shards: int, per_node: int = 1, bundle: Path | None = None
) -> Iterator[list[str]]:
    """Serves fake content nodes on free ports of this machine; yields their addresses.

    Each node has `per_node` shards; the last node has the rest. With a `bundle`, every core reads a
    passage before each reply to a read. Raises UnavailableError if the process ended, or did not
    start in time.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(
        target=_serve, args=(replies, shards, per_node, theirs, bundle), daemon=True
    )
    process.start()
    theirs.close()  # otherwise reading would block if the process ends
    try:
        yield _ports(ours, shards)
    finally:
        process.terminate()
        process.join()


def _ports(connection: Connection, shards: int) -> list[str]:
    try:
        if connection.poll(_START_TIMEOUT):
            return [f"127.0.0.1:{port}" for port in connection.recv()]
    except (EOFError, ConnectionError):
        pass
    raise UnavailableError(f"the process of {shards} fake shards did not start")


def _serve(
    replies: RecordedReplies,
    shards: int,
    per_node: int,
    connection: Connection,
    bundle: Path | None,
) -> None:
    with Disturbance(bundle) if bundle is not None else nullcontext() as disturb:
        asyncio.run(_serve_all(replies, shards, per_node, connection, disturb))


async def _serve_all(
    replies: RecordedReplies,
    shards: int,
    per_node: int,
    connection: Connection,
    disturb: Callable[[], None] | None,
) -> None:
    running: asyncio.Future[None] | None = None

    async def disturb_once() -> None:
        """Disturbs once for all reads of a question, which arrive together."""
        nonlocal running
        assert disturb is not None
        if running is None or running.done():
            running = asyncio.ensure_future(asyncio.to_thread(disturb))
        await asyncio.shield(running)

    servers, ports = [], []
    for first in range(0, shards, per_node):
        own = range(first, min(first + per_node, shards))
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        servicer = FakeNode(
            replies, own, shards, random.Random(first), disturb=disturb_once if disturb else None
        )
        shard_pb2_grpc.add_ShardServiceServicer_to_server(servicer, server)
        ports.append(server.add_insecure_port("127.0.0.1:0"))
        await server.start()
        servers.append(server)
    connection.send(ports)
    await asyncio.gather(*(server.wait_for_termination() for server in servers))
