"""Shards that repeat the replies of one real shard: any number of them, in one process.

To a front node they look like content nodes. So the cost of asking a hundred shards can be measured
on a machine that could not run as many nodes.
"""

import asyncio
import multiprocessing
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import grpc

from winnow.errors import UnavailableError
from winnow.v1 import shard_pb2, shard_pb2_grpc

_START_TIMEOUT = 60.0
"""Seconds for the process to start."""


@dataclass(frozen=True, slots=True)
class CannedReplies:
    """The replies of a shard, as bytes."""

    info: bytes
    retrieved: bytes
    read: bytes


class CannedShard(shard_pb2_grpc.ShardServiceServicer):
    """One of many shards of an index that does not exist."""

    def __init__(
        self, replies: CannedReplies, shard: int, shards: int, chance: random.Random
    ) -> None:
        self._info = shard_pb2.GetShardInfoResponse.FromString(replies.info)
        self._info.shard, self._info.shards = shard, shards
        self._info.index_passages = self._info.passages * shards
        self._replies, self._chance = replies, chance

    async def GetShardInfo(  # noqa: N802
        self, request: shard_pb2.GetShardInfoRequest, context: Any
    ) -> shard_pb2.GetShardInfoResponse:
        return self._info

    async def Retrieve(  # noqa: N802
        self, request: shard_pb2.RetrieveRequest, context: Any
    ) -> shard_pb2.RetrieveResponse:
        """Returns the recorded hits.

        One random shift of all distances makes shards differ.
        """
        found = shard_pb2.RetrieveResponse.FromString(self._replies.retrieved)
        moved = self._chance.uniform(-0.1, 0.1)
        for hit in found.hits:
            hit.distance += moved
            hit.hybrid_distance += moved
        distances = [distance + moved for distance in found.candidate_distances]
        found.candidate_distances[:] = distances
        return found

    async def Search(  # noqa: N802
        self, request: shard_pb2.SearchRequest, context: Any
    ) -> shard_pb2.SearchResponse:
        """The same readings for every question."""
        return shard_pb2.SearchResponse.FromString(self._replies.read)

    async def Read(  # noqa: N802
        self, request: shard_pb2.ReadRequest, context: Any
    ) -> shard_pb2.ReadResponse:
        found = shard_pb2.ReadResponse.FromString(self._replies.read)
        first = found.readings[0]
        del found.readings[:]
        found.readings.extend([first] * len(request.hits))
        return found


@contextmanager
def canned_shards(replies: CannedReplies, shards: int) -> Iterator[list[str]]:
    """Serves canned shards on free ports of this machine; gives their addresses.

    Raises UnavailableError if the process ended, or did not start in time.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(replies, shards, theirs), daemon=True)
    process.start()
    theirs.close()  # so that reading fails if the process ends
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
    raise UnavailableError(f"the process of {shards} canned shards did not start")


def _serve(replies: CannedReplies, shards: int, connection: Connection) -> None:
    asyncio.run(_serving(replies, shards, connection))


async def _serving(replies: CannedReplies, shards: int, connection: Connection) -> None:
    servers, ports = [], []
    for shard in range(shards):
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        servicer = CannedShard(replies, shard, shards, random.Random(shard))
        shard_pb2_grpc.add_ShardServiceServicer_to_server(servicer, server)
        ports.append(server.add_insecure_port("127.0.0.1:0"))
        await server.start()
        servers.append(server)
    connection.send(ports)
    await asyncio.gather(*(server.wait_for_termination() for server in servers))
