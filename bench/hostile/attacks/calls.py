"""Attacks by gRPC calls: nonsense, bombs, and more than can be answered."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from random import Random
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from bench.hostile import payloads
from bench.hostile.attacks.target import Target, paced
from winnow.v1 import answer_pb2, shard_pb2

_FUZZED = 4_000
_BOMBS = 100
_BOMB = 8 << 20
"""Bytes of a bomb when it is inflated; some thousand travel."""
_WATCHES, _WATCHED_BY = 5_000, 50
"""Watches, and the connections that carry them."""
_STREAMS, _STREAMED_BY = 1_000, 10
_PAUSE = 5.0
"""Seconds before a stream that was refused is opened again."""
_REFLECTIONS, _ASKED_EACH = 1_000, 5
_CANCELS = 10_000
_BURST = 3_000
_QUESTION = answer_pb2.AnswerRequest(
    question="who wrote it?", passages_to_read=2, fresh=True
).SerializeToString()
_TIMEOUT = 2.0
_CHANNEL_OPTIONS: tuple[tuple[str, Any], ...] = (
    # or channels of one process to one address share a connection
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
)


class Caller:
    """Calls any method of one server with any bytes."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    async def __call__(
        self, method: str, data: bytes, metadata: Sequence[tuple[str, str | bytes]] = ()
    ) -> str:
        """Returns the name of the status."""
        call = self.method(method)(data, timeout=_TIMEOUT, metadata=tuple(metadata))
        return str((await call.code()).name)

    def method(self, name: str) -> "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]":
        """Returns a method that takes and returns raw bytes."""
        made: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(name)
        return made


@contextlib.asynccontextmanager
async def calling(
    address: str, compression: grpc.Compression | None = None
) -> AsyncIterator[Caller]:
    """Opens a separate connection."""
    async with grpc.aio.insecure_channel(
        address, options=_CHANNEL_OPTIONS, compression=compression
    ) as channel:
        yield Caller(channel)


async def _callers(stack: contextlib.AsyncExitStack, address: str, number: int) -> list[Caller]:
    return [await stack.enter_async_context(calling(address)) for _ in range(number)]


async def questions(target: Target) -> Counter[str]:
    """Sends random messages and metadata to a front."""
    chance = Random(target.seed)
    async with calling(target.front) as call:

        async def ask(_: int) -> str:
            method, data = payloads.question(chance)
            return await call(method, data, payloads.metadata(chance))

        return await paced(_FUZZED, target.seconds, ask)


async def shards(target: Target) -> Counter[str]:
    """Sends random messages and metadata to a content node."""
    chance = Random(target.seed)
    async with calling(target.node) as call:
        method = call.method(payloads.SHARD + "GetShardInfo")
        info = shard_pb2.GetShardInfoResponse.FromString(await method(b"", timeout=5.0))

        async def ask(_: int) -> str:
            method, data = payloads.shard_call(chance, info.bundle_fingerprint, info.dimension)
            return await call(method, data, payloads.metadata(chance))

        return await paced(_FUZZED, target.seconds, ask)


async def bombs(target: Target) -> Counter[str]:
    """Sends messages that are small until they are inflated."""
    asked = answer_pb2.AnswerRequest(question="a" * _BOMB).SerializeToString()
    async with (
        calling(target.front, grpc.Compression.Gzip) as front,
        calling(target.node, grpc.Compression.Gzip) as node,
    ):

        async def throw(number: int) -> str:
            if number % 2:
                return await node(payloads.SHARD + "Search", asked)
            return await front(payloads.ANSWER, asked)

        return await paced(_BOMBS, target.seconds, throw, at_once=4)


async def watches(target: Target) -> Counter[str]:
    """Opens health watches, and holds them until the end."""
    async with contextlib.AsyncExitStack() as stack:
        callers = await _callers(stack, target.front, _WATCHED_BY)
        held = []

        async def watch(number: int) -> str:
            stub = health_pb2_grpc.HealthStub(callers[number % len(callers)].channel)
            call = stub.Watch(health_pb2.HealthCheckRequest())
            held.append(call)
            try:
                async with asyncio.timeout(5.0):
                    await call.read()
            except TimeoutError:
                return "waiting"
            except grpc.aio.AioRpcError as error:
                return str(error.code().name)
            return "OK"

        outcomes = await paced(_WATCHES, target.seconds / 2, watch)
        await asyncio.sleep(target.seconds / 2)
        for call in held:
            call.cancel()
        return outcomes


async def reflections(target: Target) -> Counter[str]:
    """Asks the reflection service for methods that do not exist."""
    symbol = reflection_pb2.ServerReflectionRequest(file_containing_symbol=payloads.MARK * 50)
    every = reflection_pb2.ServerReflectionRequest(list_services="*")
    async with calling(target.front) as call:
        stub = reflection_pb2_grpc.ServerReflectionStub(call.channel)

        async def look(_: int) -> str:
            asked = stub.ServerReflectionInfo(iter([every, symbol] * _ASKED_EACH), timeout=5.0)
            try:
                async for _reply in asked:
                    pass
            except grpc.aio.AioRpcError as error:
                return str(error.code().name)
            return "OK"

        return await paced(_REFLECTIONS, target.seconds, look)


async def streams(target: Target) -> Counter[str]:
    """Opens streams on which nothing is ever sent, and opens them again when they end."""
    async with contextlib.AsyncExitStack() as stack:
        callers = await _callers(stack, target.front, _STREAMED_BY)
        loop = asyncio.get_running_loop()
        until = loop.time() + target.seconds

        async def hold(number: int) -> Counter[str]:
            stub = reflection_pb2_grpc.ServerReflectionStub(callers[number % len(callers)].channel)
            found: Counter[str] = Counter()
            while (left := until - loop.time()) > 0:
                stream = stub.ServerReflectionInfo()
                try:
                    async with asyncio.timeout(left):
                        await stream.read()
                except TimeoutError:
                    found["waiting"] += 1
                except grpc.aio.AioRpcError as error:
                    found[str(error.code().name)] += 1
                    await asyncio.sleep(_PAUSE)
                finally:
                    stream.cancel()
            return found

        return sum(await asyncio.gather(*map(hold, range(_STREAMS))), Counter())


async def cancels(target: Target) -> Counter[str]:
    """Cancels questions as soon as they are asked."""
    async with calling(target.front) as call:
        method = call.method(payloads.ANSWER)

        async def cancel(number: int) -> str:
            asked = method(_QUESTION, timeout=_TIMEOUT)
            await asyncio.sleep(
                number % 3 / 1e3
            )  # before it is sent, on its way, or being answered
            asked.cancel()
            return "cancelled" if await asked.code() is grpc.StatusCode.CANCELLED else "ended"

        return await paced(_CANCELS, target.seconds, cancel)


async def burst(target: Target) -> Counter[str]:
    """Sends more questions at once than a front has room for, on one connection."""
    async with calling(target.front) as call:
        asked = (call(payloads.ANSWER, _QUESTION) for _ in range(_BURST))
        return Counter(await asyncio.gather(*asked))
