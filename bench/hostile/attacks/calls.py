"""Attacks by gRPC calls: random messages, gzip bombs, idle streams, and bursts."""

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
from bench.hostile.attacks.target import Target, run_paced
from winnow.v1 import answer_pb2, shard_pb2

_FUZZED_CALLS = 4_000
_BOMB_COUNT = 100
_BOMB_BYTES = 8 << 20
"""Bytes of a gzip bomb after inflation. The compressed message has a few thousand bytes."""
_WATCHES, _WATCH_CONNECTIONS = 5_000, 50
"""Number of health watches, and of the connections that carry them."""
_STREAMS, _STREAM_CONNECTIONS = 1_000, 10
_REOPEN_SECONDS = 5.0
"""Seconds before a refused stream is opened again."""
_REFLECTIONS, _REQUESTS_PER_STREAM = 1_000, 5
_CANCELS = 10_000
_BURST = 3_000
_QUESTION = answer_pb2.AnswerRequest(
    question="who wrote it?", passages_to_read=2, fresh=True
).SerializeToString()
_TIMEOUT = 2.0
_CHANNEL_OPTIONS: tuple[tuple[str, Any], ...] = (
    # without this option, channels of one process to the same address share a connection
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
)


class Caller:
    """Calls any method of one server with raw message bytes."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    async def __call__(
        self, method: str, data: bytes, metadata: Sequence[tuple[str, str | bytes]] = ()
    ) -> str:
        """Calls a method; returns the name of the gRPC status."""
        call = self.method(method)(data, timeout=_TIMEOUT, metadata=tuple(metadata))
        return str((await call.code()).name)

    def method(self, name: str) -> "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]":
        """Returns a callable that sends and receives raw message bytes."""
        multi_callable: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(
            name
        )
        return multi_callable


@contextlib.asynccontextmanager
async def open_caller(
    address: str, compression: grpc.Compression | None = None
) -> AsyncIterator[Caller]:
    """Opens a caller with a separate connection."""
    async with grpc.aio.insecure_channel(
        address, options=_CHANNEL_OPTIONS, compression=compression
    ) as channel:
        yield Caller(channel)


async def _open_callers(
    stack: contextlib.AsyncExitStack, address: str, number: int
) -> list[Caller]:
    return [await stack.enter_async_context(open_caller(address)) for _ in range(number)]


async def send_random_questions(target: Target) -> Counter[str]:
    """Sends random messages and metadata to a front."""
    rng = Random(target.seed)
    async with open_caller(target.front) as call:

        async def ask(_: int) -> str:
            method, data = payloads.random_question(rng)
            return await call(method, data, payloads.random_metadata(rng))

        return await run_paced(_FUZZED_CALLS, target.seconds, ask)


async def send_random_shard_calls(target: Target) -> Counter[str]:
    """Sends random messages and metadata to a content node."""
    rng = Random(target.seed)
    async with open_caller(target.node) as call:
        method = call.method(payloads.SHARD + "GetShardInfo")
        info = shard_pb2.GetShardInfoResponse.FromString(await method(b"", timeout=5.0))

        async def ask(_: int) -> str:
            method, data = payloads.random_shard_call(rng, info.bundle_fingerprint, info.dimension)
            return await call(method, data, payloads.random_metadata(rng))

        return await run_paced(_FUZZED_CALLS, target.seconds, ask)


async def send_gzip_bombs(target: Target) -> Counter[str]:
    """Sends gzip bombs: small compressed messages that inflate to `_BOMB_BYTES`."""
    request = answer_pb2.AnswerRequest(question="a" * _BOMB_BYTES).SerializeToString()
    async with (
        open_caller(target.front, grpc.Compression.Gzip) as front,
        open_caller(target.node, grpc.Compression.Gzip) as node,
    ):

        async def send(number: int) -> str:
            if number % 2:
                return await node(payloads.SHARD + "Search", request)
            return await front(payloads.ANSWER, request)

        return await run_paced(_BOMB_COUNT, target.seconds, send, max_concurrent=4)


async def open_health_watches(target: Target) -> Counter[str]:
    """Opens health watches, and keeps them open until the end of the attack."""
    async with contextlib.AsyncExitStack() as stack:
        callers = await _open_callers(stack, target.front, _WATCH_CONNECTIONS)
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

        outcomes = await run_paced(_WATCHES, target.seconds / 2, watch)
        await asyncio.sleep(target.seconds / 2)
        for call in held:
            call.cancel()
        return outcomes


async def query_reflection(target: Target) -> Counter[str]:
    """Queries the reflection service for all services and for symbols that do not exist."""
    symbol = reflection_pb2.ServerReflectionRequest(file_containing_symbol=payloads.MARK * 50)
    list_services = reflection_pb2.ServerReflectionRequest(list_services="*")
    async with open_caller(target.front) as call:
        stub = reflection_pb2_grpc.ServerReflectionStub(call.channel)

        async def query(_: int) -> str:
            responses = stub.ServerReflectionInfo(
                iter([list_services, symbol] * _REQUESTS_PER_STREAM), timeout=5.0
            )
            try:
                async for _response in responses:
                    pass
            except grpc.aio.AioRpcError as error:
                return str(error.code().name)
            return "OK"

        return await run_paced(_REFLECTIONS, target.seconds, query)


async def open_idle_streams(target: Target) -> Counter[str]:
    """Opens streams without sending anything, and opens them again when they end."""
    async with contextlib.AsyncExitStack() as stack:
        callers = await _open_callers(stack, target.front, _STREAM_CONNECTIONS)
        loop = asyncio.get_running_loop()
        end = loop.time() + target.seconds

        async def hold_stream(number: int) -> Counter[str]:
            stub = reflection_pb2_grpc.ServerReflectionStub(callers[number % len(callers)].channel)
            outcomes: Counter[str] = Counter()
            while (remaining := end - loop.time()) > 0:
                stream = stub.ServerReflectionInfo()
                try:
                    async with asyncio.timeout(remaining):
                        await stream.read()
                except TimeoutError:
                    outcomes["waiting"] += 1
                except grpc.aio.AioRpcError as error:
                    outcomes[str(error.code().name)] += 1
                    await asyncio.sleep(_REOPEN_SECONDS)
                finally:
                    stream.cancel()
            return outcomes

        return sum(await asyncio.gather(*map(hold_stream, range(_STREAMS))), Counter())


async def cancel_questions(target: Target) -> Counter[str]:
    """Cancels questions within milliseconds."""
    async with open_caller(target.front) as call:
        method = call.method(payloads.ANSWER)

        async def cancel(number: int) -> str:
            question = method(_QUESTION, timeout=_TIMEOUT)
            # after 0, 1 or 2 ms: before it is sent, on its way, or while it is answered
            await asyncio.sleep(number % 3 / 1e3)
            question.cancel()
            return "cancelled" if await question.code() is grpc.StatusCode.CANCELLED else "ended"

        return await run_paced(_CANCELS, target.seconds, cancel)


async def send_burst(target: Target) -> Counter[str]:
    """Sends more concurrent questions than a front admits, on a single connection."""
    async with open_caller(target.front) as call:
        questions = (call(payloads.ANSWER, _QUESTION) for _ in range(_BURST))
        return Counter(await asyncio.gather(*questions))
