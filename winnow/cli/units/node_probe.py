"""Calls a content node directly, and measures the processor time of each call."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from winnow.cli.units.asking import ProcessorClock, ProcessorTimes
from winnow.convert import shard as convert
from winnow.domain.question import EncodedQuestion
from winnow.rpc.channel import open_channel
from winnow.v1 import shard_pb2, shard_pb2_grpc

_TIMEOUT = 30.0
_POLL_SECONDS = 0.1
_EPILOGUE = 0.003
"""Seconds after a reply in which a process finishes the call."""
_HITS, _CANDIDATES, _ANSWER_TOKENS = 10, 100, 10


@dataclass(frozen=True, slots=True)
class CallTimes:
    """Times of one call, in milliseconds."""

    node: ProcessorTimes
    """Processor time of the node."""
    waiting: float
    """Time in which neither the node nor the caller worked."""
    reply: Any


class NodeProbe:
    """Calls a node. Before each call, `disturb` is called."""

    def __init__(self, address: str, pid: int, disturb: Callable[[], None]) -> None:
        self._channel = open_channel(address)
        self._stub = shard_pb2_grpc.ShardServiceStub(self._channel)
        self._pid, self._disturb = pid, disturb

    async def close(self) -> None:
        """Closes the connection."""
        await self._channel.close()

    async def wait_ready(self, shards: int) -> None:
        """Waits until the node serves all its shards."""
        request, loaded = shard_pb2.ListShardsRequest(), 0
        while loaded < shards:
            await asyncio.sleep(_POLL_SECONDS)
            reply = await self._stub.ListShards(request, timeout=_TIMEOUT, wait_for_ready=True)
            loaded = len(reply.shards)

    async def describe(self) -> CallTimes:
        """Asks for a description of the first shard, which takes hardly any time."""
        request = shard_pb2.GetShardInfoRequest(shard=0)
        return await self._measure(lambda: self._stub.GetShardInfo(request, timeout=_TIMEOUT))

    async def retrieve(self, question: EncodedQuestion, shards: int = 1) -> CallTimes:
        """Retrieves from some shards by one call, as a front does."""
        request = shard_pb2.RetrieveFromShardsRequest(
            request=shard_pb2.RetrieveRequest(
                question=convert.question_to_message(question),
                passages=_HITS,
                candidates=_CANDIDATES,
                by_words=_CANDIDATES,
            ),
            shards=[shard_pb2.RequestedShard(shard=number) for number in range(shards)],
        )
        return await self._measure(lambda: self._stub.RetrieveFromShards(request, timeout=_TIMEOUT))

    async def read(self, question: EncodedQuestion, passages: int) -> CallTimes:
        """Reads passages of the first shard; retrieves them before."""
        found = (await self.retrieve(question)).reply.results[0].retrieved
        request = shard_pb2.ReadRequest(
            question=convert.question_to_message(question),
            hits=found.hits[:passages],
            max_answer_tokens=_ANSWER_TOKENS,
            generation=found.generation,
            shard=0,
        )
        return await self._measure(lambda: self._stub.Read(request, timeout=_TIMEOUT))

    async def _measure(self, call: Callable[[], Awaitable[Any]]) -> CallTimes:
        self._disturb()
        node, own = ProcessorClock(self._pid), time.process_time()
        began = time.perf_counter()
        reply = await call()
        wall = time.perf_counter() - began
        own, so_far = time.process_time() - own, node.read().total
        await asyncio.sleep(_EPILOGUE)
        return CallTimes(node.read(), 1e3 * (wall - own) - so_far, reply)
