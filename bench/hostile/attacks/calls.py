"""Attacks by gRPC calls: nonsense, bombs, and more than can be answered."""

import asyncio
import contextlib
from collections import Counter
from random import Random

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from bench.hostile import payloads
from bench.hostile.attacks import Target
from bench.hostile.attacks.calling import calling
from bench.hostile.pacing import paced
from winnow.v1 import answer_pb2, shard_pb2

_FUZZED = 4_000
_BOMBS = 100
_BOMB = 8 << 20
"""Bytes that a bomb becomes; it travels as some thousand."""
_WATCHES, _WATCHED_BY = 5_000, 50
"""Over so many connections."""
_STREAMS, _STREAMED_BY = 1_000, 10
_PAUSE = 5.0
"""Seconds before a stream that was refused is opened again."""
_REFLECTIONS, _ASKED_EACH = 1_000, 5
_CANCELS = 10_000
_BURST = 3_000
_QUESTION = answer_pb2.AnswerRequest(question="who wrote it?", passages_to_read=2, fresh=True)


async def questions(target: Target) -> Counter[str]:
    """Messages and metadata at random to a front."""
    chance = Random(target.seed)
    async with calling(target.front) as call:

        async def ask(_: int) -> str:
            method, data = payloads.question(chance)
            return await call(method, data, payloads.metadata(chance))

        return await paced(_FUZZED, target.seconds, ask)


async def shards(target: Target) -> Counter[str]:
    """The same to a content node."""
    chance = Random(target.seed)
    async with calling(target.node) as call:
        method = call.method(payloads.SHARD + "GetShardInfo")
        info = shard_pb2.GetShardInfoResponse.FromString(await method(b"", timeout=5.0))

        async def ask(_: int) -> str:
            method, data = payloads.shard_call(chance, info.bundle_fingerprint, info.dimension)
            return await call(method, data, payloads.metadata(chance))

        return await paced(_FUZZED, target.seconds, ask)


async def bombs(target: Target) -> Counter[str]:
    """Messages that are small until they are inflated."""
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
    """Watches of its health, held until the end."""
    async with contextlib.AsyncExitStack() as stack:
        callers = [
            await stack.enter_async_context(calling(target.front)) for _ in range(_WATCHED_BY)
        ]
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
    """Looks for methods that are not there."""
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
    """Streams on which nothing is ever sent, opened again when they are ended."""
    async with contextlib.AsyncExitStack() as stack:
        callers = [
            await stack.enter_async_context(calling(target.front)) for _ in range(_STREAMED_BY)
        ]
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
    """Questions that are given up as soon as they are asked."""
    data = _QUESTION.SerializeToString()
    async with calling(target.front) as call:
        method = call.method(payloads.ANSWER)

        async def give_up(number: int) -> str:
            asked = method(data, timeout=2.0)
            await asyncio.sleep(number % 3 / 1e3)  # before it is sent, on its way, or in hand
            asked.cancel()
            return "given up" if await asked.code() is grpc.StatusCode.CANCELLED else "ended"

        return await paced(_CANCELS, target.seconds, give_up)


async def burst(target: Target) -> Counter[str]:
    """More questions at once than anybody has room for, on one connection."""
    data = _QUESTION.SerializeToString()
    async with calling(target.front) as call:
        asked = (call(payloads.ANSWER, data) for _ in range(_BURST))
        return Counter(await asyncio.gather(*asked))
