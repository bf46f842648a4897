"""What happens to calls whose message does not come, comes late, or is too large."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import raw_http2 as http2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import CollectorRegistry
from tenacious import LONG, happens, turn

from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
)
from winnow.rpc.bounded_receive import BoundedReceive
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.message_interceptor import Metadata
from winnow.rpc.server import KIB, Server
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import answer_pb2, answer_pb2_grpc

SERVICE = "winnow.v1.AnswerService"
ANSWER = f"/{SERVICE}/Answer"
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
REFLECT = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


class Servicer(answer_pb2_grpc.AnswerServiceServicer):
    async def Answer(self, request: Any, context: Any) -> Any:
        return answer_pb2.AnswerResponse(has_answer=True)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    boundary = CallInterceptor(RpcMetrics(CollectorRegistry()), quiet=True)
    server = Server(services=[SERVICE], interceptor=boundary, max_streams=128)
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(Servicer(), server.grpc)
    yield await server.start("127.0.0.1:0")
    await server.drain(0)


async def answered(port: int, question: str = "who") -> bool:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = answer_pb2_grpc.AnswerServiceStub(channel)
        reply = await stub.Answer(answer_pb2.AnswerRequest(question=question), timeout=LONG)
        return bool(reply.has_answer)


@pytest.mark.parametrize("method", [ANSWER, CHECK, WATCH])
async def test_a_call_that_ends_without_a_message_is_answered(port: int, method: str) -> None:
    peer = await http2.Peer.connect(port)
    await peer.send(http2.call(method, http2.END_HEADERS | http2.END_STREAM))
    headers = await asyncio.wait_for(peer.ended(), LONG)
    assert b"the call ended without a message" in headers.replace(b"%20", b" ")
    await peer.close()


async def test_a_rejected_call_is_answered_without_its_message() -> None:
    def door(method: str, metadata: Metadata) -> OverloadedError | None:
        known = dict(metadata or ())
        refused = method == ANSWER and known["x-winnow-client"] == "greedy"
        return OverloadedError("no room") if refused else None

    registry = CollectorRegistry()
    server = Server(
        services=[SERVICE],
        interceptor=CallInterceptor(RpcMetrics(registry), quiet=True),
        reject=door,
    )
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(Servicer(), server.grpc)
    port = await server.start("127.0.0.1:0")
    peer = await http2.Peer.connect(port)
    await peer.send(http2.call(ANSWER, extra=http2.header("x-winnow-client", "greedy")))
    headers = await asyncio.wait_for(peer.ended(), LONG)
    assert b"no room" in headers.replace(b"%20", b" ")
    assert b"x-request-id" in headers
    labels = {"method": "Answer", "status": "RESOURCE_EXHAUSTED"}
    await happens(lambda: registry.get_sample_value("winnow_request_seconds_count", labels) == 1)
    await peer.close()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = answer_pb2_grpc.AnswerServiceStub(channel)
        metadata = (("x-winnow-client", "modest"),)
        reply = await stub.Answer(answer_pb2.AnswerRequest(), timeout=LONG, metadata=metadata)
        assert reply.has_answer
    await server.drain(0)


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 * KIB


@pytest.mark.parametrize("method", [ANSWER, CHECK])
@pytest.mark.parametrize("size", [4 * KIB * KIB, 60 * KIB, 15 * KIB])
async def test_incomplete_messages_take_little_memory(port: int, method: str, size: int) -> None:
    before = resident()
    peers = [await http2.Peer.connect(port) for _ in range(200)]
    for peer in peers:
        await peer.send(http2.call(method) + http2.half_of(size))
    assert await answered(port)
    if size > 16 * KIB:  # refused as soon as it says how long it is
        await asyncio.wait_for(asyncio.gather(*(peer.ended() for peer in peers)), LONG)
    assert resident() - before < 40 * KIB * KIB
    for peer in peers:
        await peer.close()


@pytest.mark.parametrize("method", [ANSWER, CHECK, WATCH, REFLECT])
async def test_of_too_many_incomplete_messages_the_oldest_is_given_up(method: str) -> None:
    server = Server(
        services=[SERVICE],
        interceptor=CallInterceptor(RpcMetrics(CollectorRegistry())),
        max_message_bytes=4 * KIB * KIB,
    )
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(Servicer(), server.grpc)
    port = await server.start("127.0.0.1:0")
    peers = [await http2.Peer.connect(port) for _ in range(3)]
    for peer in peers:
        await peer.send(http2.call(method) + http2.half_of(60 * KIB))
    ends = [asyncio.create_task(peer.ended()) for peer in peers]
    done, _ = await asyncio.wait(ends, timeout=LONG, return_when=asyncio.FIRST_COMPLETED)
    assert len(done) == 1
    assert b"too many incomplete messages" in next(iter(done)).result().replace(b"%20", b" ")
    for end in ends:
        end.cancel()
    for peer in peers:
        await peer.close()
    await server.drain(0)


async def test_a_stream_of_messages_is_answered_until_it_ends(port: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        every = reflection_pb2.ServerReflectionRequest(list_services="*")
        call = stub.ServerReflectionInfo(iter([every] * 3), timeout=LONG)
        assert len([reply async for reply in call]) == 3
        assert await call.code() is grpc.StatusCode.OK


async def test_a_stream_with_bytes_that_are_no_message_is_the_clients_mistake(port: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        raw: Any = channel.stream_stream(REFLECT, request_serializer=bytes)
        call = raw(iter([b"\xff\xff\xff"]), timeout=LONG)
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_message_that_is_larger_than_a_question_can_be_is_refused(port: int) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answered(port, "a" * 17 * KIB)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await answered(port, "a" * 15 * KIB)


async def test_headers_without_an_end_are_not_read_for_ever() -> None:
    server = Server(
        services=[SERVICE],
        interceptor=CallInterceptor(RpcMetrics(CollectorRegistry())),
        idle_seconds=1.0,
    )
    peer = await http2.Peer.connect(await server.start("127.0.0.1:0"))
    await peer.send(http2.call(ANSWER, flags=0))
    closed = asyncio.create_task(peer.closed())
    more = http2.frame(http2.CONTINUATION, 0, http2.STREAM, http2.header("x-more", "a" * 100))
    async with asyncio.timeout(LONG):
        with contextlib.suppress(ConnectionError):
            while not closed.done():
                await peer.send(more)
                await turn()
        with contextlib.suppress(ConnectionError):
            await closed
    with contextlib.suppress(ConnectionError):
        await peer.close()
    await server.drain(0)


async def test_a_burst_of_calls_cancels_no_call(port: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = answer_pb2_grpc.AnswerServiceStub(channel)
        health = health_pb2_grpc.HealthStub(channel)
        calls = [stub.Answer(answer_pb2.AnswerRequest(), timeout=LONG) for _ in range(3_000)]
        check = health.Check(health_pb2.HealthCheckRequest(), timeout=LONG)
        codes = {await call.code() for call in calls}
        assert codes == {grpc.StatusCode.OK}
        assert await check.code() is grpc.StatusCode.OK


async def test_a_client_with_more_calls_than_a_connection_may_have_waits_on_its_own_side() -> None:
    class Slow(answer_pb2_grpc.AnswerServiceServicer):
        asked, go_on = 0, asyncio.Event()

        async def Answer(self, request: Any, context: Any) -> Any:
            self.asked += 1
            await self.go_on.wait()
            return answer_pb2.AnswerResponse(has_answer=True)

    servicer = Slow()
    server = Server(
        services=[SERVICE],
        interceptor=CallInterceptor(RpcMetrics(CollectorRegistry())),
        max_streams=5,
    )
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(servicer, server.grpc)
    port = await server.start("127.0.0.1:0")
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with (
        grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as greedy,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as polite,
    ):
        many = answer_pb2_grpc.AnswerServiceStub(greedy)
        calls = [many.Answer(answer_pb2.AnswerRequest(), timeout=LONG) for _ in range(50)]
        await happens(lambda: servicer.asked == 5)
        health = health_pb2_grpc.HealthStub(polite)
        await health.Check(health_pb2.HealthCheckRequest(), timeout=LONG)
        assert servicer.asked == 5
        servicer.go_on.set()
        assert all([(await call).has_answer for call in calls])
    await server.drain(0)


class Call:
    """A call that somebody else decides on."""

    def __init__(self) -> None:
        self.arrived: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def read(self) -> Any:
        return await asyncio.shield(self.arrived)


async def test_a_message_that_has_arrived_is_returned() -> None:
    call = Call()
    call.arrived.set_result("question")
    assert await BoundedReceive(1).first_message(call) == "question"


async def test_a_late_message_is_given_up() -> None:
    with pytest.raises(DeadlineExceededError, match=r"was incomplete after 0\.01 seconds"):
        await BoundedReceive(1, seconds=0.01).first_message(Call())


async def test_a_call_that_ends_without_a_message_is_a_mistake() -> None:
    call = Call()
    call.arrived.set_result(grpc.aio.EOF)
    with pytest.raises(InvalidRequestError, match="ended without a message"):
        await BoundedReceive(1).first_message(call)


async def test_the_message_with_the_longest_wait_is_given_up() -> None:
    arrivals = BoundedReceive(2)
    calls = [Call() for _ in range(3)]
    waits = []
    for call in calls:
        waits.append(asyncio.create_task(arrivals.first_message(call)))
        await asyncio.sleep(0)
    await happens(waits[0].done)
    with pytest.raises(OverloadedError, match="too many incomplete messages"):
        await waits[0]
    for call in calls[1:]:
        call.arrived.set_result("question")
    assert [await wait for wait in waits[1:]] == ["question", "question"]


async def test_every_missing_message_is_given_up_at_its_time() -> None:
    arrivals = BoundedReceive(10, seconds=0.01)
    waits = [asyncio.create_task(arrivals.first_message(Call())) for _ in range(3)]
    for wait in waits:
        with pytest.raises(DeadlineExceededError):
            await wait
    with pytest.raises(DeadlineExceededError):
        await arrivals.first_message(Call())


async def test_a_cancelled_call_leaves_no_wait() -> None:
    arrivals, call = BoundedReceive(1), Call()
    given_up = asyncio.create_task(arrivals.first_message(call))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    call.arrived.set_result("too late")
    following = Call()
    following.arrived.set_result("question")
    assert await arrivals.first_message(following) == "question"
