"""Calls of services in the same process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc
import pytest

from winnow.errors import DeadlineExceededError, NotServedError, OverloadedError
from winnow.rpc.in_process import InProcessServices
from winnow.v1 import feed_pb2, feed_pb2_grpc

Put = Callable[[Any], Awaitable[feed_pb2.PutResponse]]


def stub(put: Put) -> Any:
    """A stub of a service whose Put does what a test wants."""
    services = InProcessServices()
    servicer = type("Servicer", (feed_pb2_grpc.FeedServiceServicer,), _methods(put))()
    server = cast("grpc.aio.Server", services)
    feed_pb2_grpc.add_FeedServiceServicer_to_server(servicer, server)
    return feed_pb2_grpc.FeedServiceStub(cast("grpc.aio.Channel", services))


def _methods(put: Put) -> dict[str, Any]:
    async def call(_servicer: Any, _request: Any, context: Any) -> Any:
        return await put(context)

    return dict.fromkeys(("Put", "PutStream", "Delete", "DeleteStream"), call)


async def never(_: Any) -> feed_pb2.PutResponse:
    raise AssertionError("it is not called")


async def test_a_service_sees_the_deadline_and_the_metadata_of_its_caller() -> None:
    async def put(context: Any) -> feed_pb2.PutResponse:
        assert 0 < context.time_remaining() <= 60
        assert context.invocation_metadata() == (("x-request-id", "a"),)
        return feed_pb2.PutResponse()

    reply = await stub(put).Put(
        feed_pb2.PutRequest(), timeout=60, metadata=(("x-request-id", "a"),)
    )
    assert reply == feed_pb2.PutResponse()


async def test_errors_are_raised_as_the_service_raises_them() -> None:
    async def put(_: Any) -> feed_pb2.PutResponse:
        raise OverloadedError("no room", 0.5)

    with pytest.raises(OverloadedError, match="no room"):
        await stub(put).Put(feed_pb2.PutRequest())


async def test_a_service_that_ignores_its_deadline_is_cancelled() -> None:
    ended = asyncio.Event()

    async def put(_: Any) -> feed_pb2.PutResponse:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    with pytest.raises(DeadlineExceededError, match="no reply within 0 s"):
        await stub(put).Put(feed_pb2.PutRequest(), timeout=0)
    assert ended.is_set()


async def test_streams_and_unknown_methods_are_refused() -> None:
    with pytest.raises(NotServedError, match="PutStream takes a stream, which needs a server"):
        await stub(never).PutStream(iter(()))
    empty = feed_pb2_grpc.FeedServiceStub(cast("grpc.aio.Channel", InProcessServices()))
    with pytest.raises(NotServedError, match=r"does not serve .*/Put"):
        await empty.Put(feed_pb2.PutRequest())
