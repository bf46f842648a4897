"""Shards that say again what one real shard said: any number of them, in one process.

A front cannot tell them from content nodes, so that it can be measured what it costs a front to ask
a hundred shards, on a machine that could not run as many.
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

_PATIENCE = 60.0
"""Seconds for the process to begin."""


@dataclass(frozen=True, slots=True)
class CannedReplies:
    """What a shard said, as bytes: of itself, and to a question."""

    info: bytes
    retrieved: bytes
    read: bytes


class CannedShard(shard_pb2_grpc.ShardServiceServicer):
    """One of many shards of an index that is not there."""

    def __init__(self, said: CannedReplies, shard: int, shards: int, chance: random.Random) -> None:
        self._info = shard_pb2.GetShardInfoResponse.FromString(said.info)
        self._info.shard, self._info.shards = shard, shards
        self._info.index_passages = self._info.passages * shards
        self._said, self._chance = said, chance

    async def GetShardInfo(  # noqa: N802
        self, request: shard_pb2.GetShardInfoRequest, context: Any
    ) -> shard_pb2.GetShardInfoResponse:
        return self._info

    async def Retrieve(  # noqa: N802
        self, request: shard_pb2.RetrieveRequest, context: Any
    ) -> shard_pb2.RetrieveResponse:
        """The same passages, a little nearer or farther every time, as on other shards."""
        found = shard_pb2.RetrieveResponse.FromString(self._said.retrieved)
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
        """What it read, whatever was asked."""
        return shard_pb2.SearchResponse.FromString(self._said.read)

    async def Read(  # noqa: N802
        self, request: shard_pb2.ReadRequest, context: Any
    ) -> shard_pb2.ReadResponse:
        found = shard_pb2.ReadResponse.FromString(self._said.read)
        first = found.readings[0]
        del found.readings[:]
        found.readings.extend([first] * len(request.hits))
        return found


@contextmanager
def canned_shards(said: CannedReplies, shards: int) -> Iterator[list[str]]:
    """Serves as long as this lasts; gives their addresses, on free ports of this machine.

    Raises:
        UnavailableError: the process ended, or did not begin in time.

    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(said, shards, theirs), daemon=True)
    process.start()
    theirs.close()  # or nobody would notice that the process ends
    try:
        yield _ports(ours, shards)
    finally:
        process.terminate()
        process.join()


def _ports(connection: Connection, shards: int) -> list[str]:
    try:
        if connection.poll(_PATIENCE):
            return [f"127.0.0.1:{port}" for port in connection.recv()]
    except (EOFError, ConnectionError):
        pass
    raise UnavailableError(f"the process of {shards} canned shards did not begin")


def _serve(said: CannedReplies, shards: int, connection: Connection) -> None:
    asyncio.run(_serving(said, shards, connection))


async def _serving(said: CannedReplies, shards: int, connection: Connection) -> None:
    servers, ports = [], []
    for shard in range(shards):
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        servicer = CannedShard(said, shard, shards, random.Random(shard))
        shard_pb2_grpc.add_ShardServiceServicer_to_server(servicer, server)
        ports.append(server.add_insecure_port("127.0.0.1:0"))
        await server.start()
        servers.append(server)
    connection.send(ports)
    await asyncio.gather(*(server.wait_for_termination() for server in servers))
