"""What one client address may hold open, and what nonsense costs, over real gRPC."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc
from prometheus_client import CollectorRegistry
from tenacious import LONG, happens

from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.security.from_settings import ServerSecurity
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import answer_pb2, answer_pb2_grpc, feed_pb2, feed_pb2_grpc

ASK, FEED = "winnow.v1.AnswerService", "winnow.v1.FeedService"
_MOST = 50
_WATCHES = 5
_STREAMS = 1_000


class Answers(answer_pb2_grpc.AnswerServiceServicer):
    """Answers at once."""

    async def Answer(self, request: answer_pb2.AnswerRequest, context: Any) -> Any:
        return answer_pb2.AnswerResponse()


class Feeds(feed_pb2_grpc.FeedServiceServicer):
    """Takes what comes."""

    async def Put(self, request: feed_pb2.PutRequest, context: Any) -> Any:
        return feed_pb2.PutResponse()

    async def Delete(self, request: feed_pb2.DeleteRequest, context: Any) -> Any:
        return feed_pb2.DeleteResponse()

    async def PutStream(self, requests: AsyncIterator[Any], context: Any) -> Any:
        return feed_pb2.FeedSummary(stored=len([each async for each in requests]))

    async def DeleteWhere(self, request: feed_pb2.DeleteWhereRequest, context: Any) -> Any:
        return feed_pb2.DeleteWhereResponse()

    async def DeleteTenant(self, request: feed_pb2.DeleteTenantRequest, context: Any) -> Any:
        return feed_pb2.DeleteTenantResponse()

    async def DeleteStream(self, requests: AsyncIterator[Any], context: Any) -> Any:
        return await self.PutStream(requests, context)


class Served:
    """A server on a port, and on a socket: two addresses."""

    def __init__(self, socket: Path, security: ServerSecurity) -> None:
        boundary = CallInterceptor(RpcMetrics(CollectorRegistry()), quiet=True)
        self.server = Server(services=[ASK, FEED], interceptor=boundary, security=security)
        answer_pb2_grpc.add_AnswerServiceServicer_to_server(Answers(), self.server.grpc)
        feed_pb2_grpc.add_FeedServiceServicer_to_server(Feeds(), self.server.grpc)
        self.other = f"unix:{socket}"
        self.server.grpc.add_insecure_port(self.other)
        self.address = ""


@pytest.fixture
async def served(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    made = Served(tmp_path / "socket", getattr(request, "param", ServerSecurity(peer_calls=_MOST)))
    made.address = f"127.0.0.1:{await made.server.start('127.0.0.1:0')}"
    yield made
    await made.server.drain(0)


async def answered(channel: grpc.aio.Channel) -> bool:
    stub = answer_pb2_grpc.AnswerServiceStub(channel)
    try:
        await stub.Answer(answer_pb2.AnswerRequest(question="who?"), timeout=LONG)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
            return False
        raise
    return True


async def test_a_thousand_idle_streams_of_one_address_delay_no_other_caller(served: Served) -> None:
    """Most are refused at once; when the others end, the address is let in again."""
    async with (
        grpc.aio.insecure_channel(served.address) as crowded,
        grpc.aio.insecure_channel(served.other) as elsewhere,
    ):
        stub = feed_pb2_grpc.FeedServiceStub(crowded)
        streams = [stub.PutStream(timeout=LONG) for _ in range(_STREAMS)]
        await happens(lambda: sum(each.done() for each in streams) >= _STREAMS - _MOST)
        assert not await answered(crowded)
        assert await answered(elsewhere)
        held = [each for each in streams if not each.done()]
        assert len(held) == _MOST
        for each in held:
            each.cancel()
        in_hand = served.server._messages._limit._running
        await happens(lambda: not in_hand)
        assert await answered(crowded)


async def crowd_of_watches(channel: grpc.aio.Channel) -> list[Any]:
    """As many watches of the health as one address may have."""
    watch = health_pb2_grpc.HealthStub(channel).Watch
    watches = [watch(health_pb2.HealthCheckRequest()) for _ in range(_WATCHES)]
    await asyncio.gather(*(each.read() for each in watches))
    return watches


async def test_watches_of_the_health_have_a_small_limit(served: Served) -> None:
    async with grpc.aio.insecure_channel(served.address) as channel:
        watches = await crowd_of_watches(channel)
        further = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        with pytest.raises(grpc.aio.AioRpcError, match="health watches") as caught:
            await further.read()
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        for each in watches:
            each.cancel()


async def test_watches_of_the_health_take_nothing_of_calls_and_probes(served: Served) -> None:
    """Also where strangers have the address that everybody behind a proxy has."""
    async with grpc.aio.insecure_channel(served.address) as channel:
        watches = await crowd_of_watches(channel)
        assert await answered(channel)
        check = health_pb2_grpc.HealthStub(channel).Check
        assert await check(health_pb2.HealthCheckRequest(), timeout=LONG)
        for each in watches:
            each.cancel()


async def test_a_probe_is_answered_though_its_address_has_no_call_left(served: Served) -> None:
    async with grpc.aio.insecure_channel(served.address) as channel:
        stub = feed_pb2_grpc.FeedServiceStub(channel)
        streams = [stub.PutStream(timeout=LONG) for _ in range(_MOST + 1)]
        await happens(lambda: any(each.done() for each in streams))
        check = health_pb2_grpc.HealthStub(channel).Check
        assert await check(health_pb2.HealthCheckRequest(), timeout=LONG)
        for each in streams:
            each.cancel()


@pytest.mark.parametrize("served", [ServerSecurity(reflection=False)], indirect=True)
async def test_reflection_can_be_switched_off(served: Served) -> None:
    async with grpc.aio.insecure_channel(served.address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        # sends no message: gRPC would call it INTERNAL if the refusal came before that
        looking = stub.ServerReflectionInfo(timeout=LONG)
        assert await looking.code() is grpc.StatusCode.UNIMPLEMENTED


def _structs(depth: int) -> bytes:
    """A passage whose metadata are objects in objects, so deep."""
    value = b""
    for _ in range(depth):  # Struct.fields, its value, Value.struct_value
        entry = b"\x0a\x01a" + b"\x12" + _sized(b"\x2a" + _sized(value))
        value = b"\x0a" + _sized(entry)
    return b"\x0a" + _sized(b"\x22" + _sized(value))


def _sized(data: bytes) -> bytes:
    length, prefix = len(data), b""
    while length > 127:
        prefix, length = prefix + bytes([length & 127 | 128]), length >> 7
    return prefix + bytes([length]) + data


@pytest.mark.parametrize(
    ("method", "data", "code"),
    [
        (f"/{ASK}/Answer", b"\x0b" * 16_000, "INVALID_ARGUMENT"),
        (f"/{ASK}/Answer", b"\x7b" * 1_000 + b"\x7c" * 1_000, "INVALID_ARGUMENT"),
        (f"/{FEED}/Put", _structs(600), "INVALID_ARGUMENT"),
        (f"/{ASK}/Answer", b"\x0a" + _sized(b"a" * 8_000_000), "RESOURCE_EXHAUSTED"),
    ],
    ids=["groups without an end", "nested groups", "nested objects", "eight megabytes"],
)
@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
async def test_a_message_that_is_nested_or_too_large_is_refused(
    served: Served, method: str, data: bytes, code: str, compression: Any
) -> None:
    """Also one that is small until it is inflated; then the server goes on."""
    async with grpc.aio.insecure_channel(served.address, compression=compression) as channel:
        call: Any = channel.unary_unary(method, request_serializer=bytes)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(data, timeout=LONG)
        assert caught.value.code().name == code
        assert await answered(channel)
