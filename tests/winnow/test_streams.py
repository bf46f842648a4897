"""Streams that clients send, over real gRPC: how each ends."""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import raw_http2 as http2
from google.rpc import error_details_pb2, status_pb2
from prometheus_client import CollectorRegistry
from tenacious import LONG, growing, happens

from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    Violation,
)
from winnow.rpc import request_id
from winnow.rpc.bounded_receive import BoundedReceive, MessageStream
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.message_interceptor import Metadata
from winnow.rpc.server import KIB, Server
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import feed_pb2, feed_pb2_grpc

SERVICE = "winnow.v1.FeedService"
DELETE = f"/{SERVICE}/DeleteStream"


class Servicer(feed_pb2_grpc.FeedServiceServicer):
    """Counts deletions; the ids say what else is to happen."""

    def __init__(self) -> None:
        self.read = 0
        self.go_on = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.left, self.ends = 0.0, math.inf
        """Seconds that the last stream had left when it began, and when it was to end."""

    async def DeleteStream(self, requests: AsyncIterator[Any], context: Any) -> Any:
        self.left = context.time_remaining() or 0.0
        self.ends = time.monotonic() + self.left
        try:
            async for request in requests:
                self.read += len(request.deletions)
                for each in request.deletions:
                    await self._do(each.id)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return feed_pb2.FeedSummary(stored=self.read)

    async def _do(self, what: str) -> None:
        if what == "bad":
            raise InvalidRequestError(Violation("deletions[0].id", "is bad"))
        if what == "bug":
            raise ZeroDivisionError("secret")
        if what == "wait":
            await self.go_on.wait()


class House:
    def __init__(self, **options: Any) -> None:
        self.registry = CollectorRegistry()
        self.servicer = Servicer()  # type: ignore[abstract]  # the others are not called
        boundary = CallInterceptor(RpcMetrics(self.registry), quiet=True)
        self.server = Server(services=[SERVICE], interceptor=boundary, **options)
        feed_pb2_grpc.add_FeedServiceServicer_to_server(self.servicer, self.server.grpc)
        self.port = 0

    def ended(self, status: str) -> float:
        labels = {"method": "DeleteStream", "status": status}
        return self.registry.get_sample_value("winnow_request_seconds_count", labels) or 0.0


@contextlib.asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[tuple[House, Any]]:
    house = House(**options)
    house.port = await house.server.start("127.0.0.1:0")
    await house.server.set_serving(True)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{house.port}") as channel:
            yield house, feed_pb2_grpc.FeedServiceStub(channel)
    finally:  # one that still ran when it is collected would fail a later test
        await house.server.drain(0)


def deleting(*ids: str) -> feed_pb2.DeleteRequest:
    return feed_pb2.DeleteRequest(deletions=[feed_pb2.Deletion(id=each) for each in ids])


def hear_of_cancelling_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the server wait until gRPC tells it that the client has cancelled a stream.

    On a busy machine gRPC tells of it too late for a server that waits for a moment only.
    """
    monkeypatch.setattr("winnow.rpc.bounded_receive.CANCEL_SECONDS", LONG)


async def test_every_message_is_read_and_one_response_ends_the_call() -> None:
    async with serving() as (house, stub):
        call = stub.DeleteStream(iter([deleting("a", "b"), deleting("c")]), timeout=LONG)
        assert (await call).stored == 3
        await happens(lambda: house.ended("OK") == 1)


async def test_a_stream_without_a_message_is_answered() -> None:
    async with serving() as (_, stub):
        assert (await stub.DeleteStream(iter([]), timeout=LONG)).stored == 0


@pytest.mark.parametrize(("what", "code"), [("bad", "INVALID_ARGUMENT"), ("bug", "INTERNAL")])
async def test_an_error_in_the_middle_ends_the_call_and_names_its_request(
    what: str, code: str
) -> None:
    async with serving() as (house, stub):
        call = stub.DeleteStream(timeout=LONG, metadata=((request_id.KEY, "mine-1"),))
        await call.write(deleting("a"))
        await call.write(deleting(what))
        assert (await call.code()).name == code
        trailing = dict(await call.trailing_metadata())
        assert trailing[request_id.KEY] == "mine-1"
        status = status_pb2.Status.FromString(trailing["grpc-status-details-bin"])
        assert any(each.Is(error_details_pb2.RequestInfo.DESCRIPTOR) for each in status.details)
        await happens(lambda: house.ended(code) == 1)


async def test_bytes_in_the_middle_that_are_no_message_are_the_clients_mistake() -> None:
    async with serving() as (house, _):
        async with grpc.aio.insecure_channel(f"127.0.0.1:{house.port}") as channel:
            raw: Any = channel.stream_unary(DELETE, request_serializer=bytes)
            call = raw(timeout=LONG)
            await call.write(deleting("a").SerializeToString())
            await call.write(b"\xff\xff\xff")
            assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "not a valid message of this method" in await call.details()
        await happens(lambda: house.ended("INVALID_ARGUMENT") == 1)
        assert house.servicer.read == 1


async def test_a_message_in_the_middle_that_is_too_large_ends_the_call() -> None:
    async with serving() as (_, stub):
        call = stub.DeleteStream(timeout=LONG)
        await call.write(deleting("a"))
        await call.write(deleting("a" * 17 * KIB))
        assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "larger than max" in await call.details()
        assert (await stub.DeleteStream(iter([deleting("b")]), timeout=LONG)).stored


async def test_a_client_that_cancels_its_stream_is_counted_as_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hear_of_cancelling_in_any_case(monkeypatch)
    async with serving() as (house, stub):
        call = stub.DeleteStream(timeout=LONG)
        await call.write(deleting("a"))
        await happens(lambda: house.servicer.read == 1)
        call.cancel()
        await asyncio.wait_for(house.servicer.cancelled.wait(), LONG)
        await happens(lambda: house.ended("CANCELLED") == 1)
        assert not house.ended("OK")


async def test_a_client_that_is_gone_ends_its_stream() -> None:
    async with serving() as (house, _):
        peer = await http2.Peer.connect(house.port)
        await peer.send(http2.call(DELETE) + http2.half_of(1_000))
        await happens(lambda: house.server._messages.running_calls == 1)
        await peer.close()
        await happens(lambda: house.server._messages.running_calls == 0)


async def test_a_deadline_that_passes_between_messages_is_counted_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hear_of_cancelling_in_any_case(monkeypatch)
    for seconds in growing(3.0):
        if await ended_by_deadline(seconds):
            break


async def ended_by_deadline(seconds: float) -> bool:
    """Whether a stream of `seconds` came to the server at once; if so, checks how it is counted.

    The server counts its seconds from the arrival of the call. If that is late, the client cancels
    the stream before the server's own deadline, or before the stream has begun.
    """
    async with serving() as (house, stub):
        ends = time.monotonic() + seconds
        call = stub.DeleteStream(timeout=seconds)
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await call.write(deleting("a"))
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        if not house.servicer.read or house.servicer.ends - ends > 0.01 * house.servicer.left:
            return False
        await happens(lambda: house.ended("DEADLINE_EXCEEDED") == 1)
        await happens(lambda: house.server._messages.running_calls == 0)
        assert house.servicer.read == 1
        assert not house.ended("OK")
        return True


async def test_what_the_handler_does_not_read_yet_waits_with_the_client() -> None:
    async with serving() as (house, stub):
        call = stub.DeleteStream(timeout=LONG)
        await call.write(deleting("wait"))
        sent = 0

        async def send() -> None:
            nonlocal sent
            for _ in range(1_000):
                await call.write(deleting("a" * 8 * KIB))
                sent += 1
            await call.done_writing()

        sending = asyncio.create_task(send())
        await happens(lambda: house.servicer.read == 1)
        held = -1
        while held != sent:  # until nothing moves any more
            held = sent
            await asyncio.wait({sending}, timeout=0.2)
        assert house.servicer.read == 1
        assert sent < 500
        house.servicer.go_on.set()
        assert (await call).stored == 1_001
        await sending


async def test_a_stream_is_rejected_before_a_message_is_read() -> None:
    def door(method: str, metadata: Metadata) -> OverloadedError | None:
        return OverloadedError("no room", 0.25) if method == DELETE else None

    async with serving(reject=door) as (house, stub):
        call = stub.DeleteStream(timeout=LONG)
        assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert house.servicer.read == 0


async def test_a_server_that_ends_tells_its_streams() -> None:
    async with serving() as (house, stub):
        call = stub.DeleteStream(timeout=LONG)
        await call.write(deleting("a"))
        await happens(lambda: house.servicer.read == 1)
        await asyncio.wait_for(house.server.drain(60), LONG)
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert "send the unacknowledged messages again" in await call.details()


async def test_a_server_that_ends_lets_a_stream_finish_what_it_has_read() -> None:
    async with serving() as (house, stub):
        call = stub.DeleteStream(iter([deleting("wait")]), timeout=LONG)
        await happens(lambda: house.servicer.read == 1)
        draining = asyncio.create_task(house.server.drain(60))
        house.servicer.go_on.set()
        assert await call.code() is grpc.StatusCode.UNAVAILABLE  # there might have been more
        await asyncio.wait_for(draining, LONG)


class Silent:
    """A call whose client sends nothing more."""

    async def read(self) -> Any:
        return await asyncio.get_running_loop().create_future()


async def test_a_stream_that_stalls_is_given_up() -> None:
    messages = MessageStream(BoundedReceive(1, seconds=0.01), Silent())
    with pytest.raises(DeadlineExceededError, match=r"was incomplete after 0\.01 seconds"):
        await anext(messages)


async def test_messages_of_streams_count_among_all_incomplete_messages() -> None:
    arrivals = BoundedReceive(1)
    first = asyncio.ensure_future(anext(MessageStream(arrivals, Silent())))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(anext(MessageStream(arrivals, Silent())))
    with pytest.raises(OverloadedError, match="too many incomplete messages"):
        await asyncio.wait_for(first, LONG)
    second.cancel()
