"""The edge of every server, over real gRPC on a free port."""

import asyncio
import contextlib
import math
import os
import select
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
import raw_http2 as http2
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from listening import new_server
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from tenacious import LONG, growing, happens, turn

from winnow import reply_headers
from winnow.errors import (
    InvalidRequestError,
    NotLoadedError,
    OverloadedError,
    UnavailableError,
    Violation,
)
from winnow.rpc import request_id
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import _STREAM_END_SECONDS, Server
from winnow.rpc.status import INTERNAL_MESSAGE, error_of
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import answer_pb2, answer_pb2_grpc

SERVICE = "winnow.v1.AnswerService"
SERVING = health_pb2.HealthCheckResponse.SERVING
_PENDING = 10_000
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Servicer(answer_pb2_grpc.AnswerServiceServicer):
    def __init__(self) -> None:
        self.hanging = asyncio.Event()
        self.left, self.ends = 0.0, math.inf
        """Seconds that a call that hangs had left when it began, and when it was to end."""
        self.fault = ""

    async def Answer(self, request: answer_pb2.AnswerRequest, context: Any) -> Any:
        if request.question == "hang":
            self.left = context.time_remaining() or 0.0
            self.ends = time.monotonic() + self.left
            self.hanging.set()
            await asyncio.Event().wait()
        if request.question == "tell":
            reply_headers.add("x-told", "something")
        if request.question == "bug":
            raise ZeroDivisionError("secret")
        if request.question == "bad":
            raise InvalidRequestError(Violation("question", "is bad"))
        if request.question == "full":
            raise OverloadedError("no room")
        if request.question == "fault":
            raise NotLoadedError(self.fault)
        return answer_pb2.AnswerResponse(request_id=request_id.current())


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def servicer() -> Servicer:
    return Servicer()


@pytest.fixture
async def server(registry: CollectorRegistry, servicer: Servicer) -> AsyncIterator[Server]:
    made = Server(services=[SERVICE], interceptor=CallInterceptor(RpcMetrics(registry)))
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(servicer, made.grpc)
    yield made
    await made.drain(0)


@pytest.fixture
async def channel(server: Server) -> AsyncIterator[grpc.aio.Channel]:
    port = await server.start("127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as opened:
        yield opened


def ask(channel: grpc.aio.Channel, question: str, **options: Any) -> Any:
    stub = answer_pb2_grpc.AnswerServiceStub(channel)
    return stub.Answer(answer_pb2.AnswerRequest(question=question), timeout=LONG, **options)


async def test_a_request_id_is_passed_on_or_created(
    channel: grpc.aio.Channel,
) -> None:
    sent = await ask(channel, "x", metadata=((request_id.KEY, "mine-1"),))
    assert sent.request_id == "mine-1"
    made = await ask(channel, "x")
    assert len(made.request_id) == 16
    refused = await ask(channel, "x", metadata=((request_id.KEY, "log injection"),))
    assert refused.request_id != "log injection"


async def test_a_reply_has_the_headers_that_were_added_during_its_call(
    channel: grpc.aio.Channel,
) -> None:
    told, other = ask(channel, "tell"), ask(channel, "x")
    assert dict(await told.trailing_metadata())["x-told"] == "something"
    for call in (told, other):
        assert dict(await call.trailing_metadata())[request_id.KEY] == (await call).request_id
    assert "x-told" not in dict(await other.trailing_metadata())


async def test_an_unexpected_error_is_internal_without_details(
    channel: grpc.aio.Channel, registry: CollectorRegistry
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(channel, "bug")
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert caught.value.details() == INTERNAL_MESSAGE
    assert (await ask(channel, "fine")).request_id
    labels = {"method": "Answer", "status": "INTERNAL"}
    assert registry.get_sample_value("winnow_request_seconds_count", labels) == 1


@pytest.mark.parametrize(
    ("quiet", "question", "lines"),
    [
        (False, "fine", ["call"]),
        (False, "full", ["call refused"]),
        (True, "fine", []),
        (True, "full", []),
        (True, "bad", ["call refused"]),
        (True, "bug", ["call failed"]),
    ],
)
async def test_a_quiet_server_does_not_log_common_statuses(
    quiet: bool, question: str, lines: list[str]
) -> None:
    server = Server(
        services=[SERVICE], interceptor=CallInterceptor(RpcMetrics(CollectorRegistry()), quiet)
    )
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(Servicer(), server.grpc)
    port = await server.start("127.0.0.1:0")
    with capture_logs() as logged:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with contextlib.suppress(grpc.aio.AioRpcError):
                await ask(channel, question)
        await server.drain(10)
    assert [line["event"] for line in logged] == lines


async def test_a_users_mistake_is_a_field_violation(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(channel, "bad")
    assert violated(caught.value) == ["question"]


@pytest.mark.parametrize(
    ("question", "code"),
    [("bad", "INVALID_ARGUMENT"), ("full", "RESOURCE_EXHAUSTED"), ("bug", "INTERNAL")],
)
async def test_every_error_names_its_request_in_trailers_and_details(
    channel: grpc.aio.Channel, question: str, code: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(channel, question, metadata=((request_id.KEY, "mine-1"),))
    assert caught.value.code().name == code
    assert named(caught.value) == ("mine-1", "mine-1")


async def test_a_message_that_cannot_be_read_names_its_request_too(
    channel: grpc.aio.Channel,
) -> None:
    raw: Any = channel.unary_unary(f"/{SERVICE}/Answer", request_serializer=bytes)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await raw(b"\xff\xff\xff", timeout=LONG)
    in_trailers, in_details = named(caught.value)
    assert in_trailers == in_details
    assert len(in_trailers) == 16


@pytest.mark.parametrize(
    "fault", [os.fsdecode(b"caf\xe9 is damaged"), "long " * 2_000, "é" * 5_000]
)
async def test_an_error_with_any_content_arrives(
    channel: grpc.aio.Channel, servicer: Servicer, fault: str
) -> None:
    """A name of a file that is not UTF-8, or more than gRPC takes of metadata."""
    servicer.fault = fault
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(channel, "fault")
    error = caught.value
    assert type(error_of(error.code(), "", error.trailing_metadata())) is NotLoadedError
    assert str(error.details()).startswith(fault[:3])


def named(error: grpc.aio.AioRpcError) -> tuple[str, str]:
    """The request's id in the trailing metadata, and in the details of the status."""
    metadata = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    info = error_details_pb2.RequestInfo()
    assert any(packed.Unpack(info) for packed in status.details)
    return metadata[request_id.KEY], info.request_id


def counted(registry: CollectorRegistry, status: str) -> float:
    """Calls of Answer that ended with this status."""
    labels = {"method": "Answer", "status": status}
    return registry.get_sample_value("winnow_request_seconds_count", labels) or 0.0


# gRPC tells the server a deadline in few digits: of 1.501 s it knows 1.51 s, and the client gives
# up before that
@pytest.mark.parametrize("deadline", [1.501, 2.0])
async def test_a_deadline_that_passes_in_the_handler_is_counted_as_one(deadline: float) -> None:
    for seconds in growing(deadline):
        if await hung_until(seconds):
            break


async def hung_until(deadline: float) -> bool:
    """Whether a call came to a server at once, and hung there; if so, checks how it is counted.

    The server counts the seconds from the arrival of the call. If that is late, the client gives up
    before the server's own deadline, or before the handler has begun.
    """
    registry, servicer = CollectorRegistry(), Servicer()
    server = Server(services=[SERVICE], interceptor=CallInterceptor(RpcMetrics(registry)))
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(servicer, server.grpc)
    port = await server.start("127.0.0.1:0")
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = answer_pb2_grpc.AnswerServiceStub(channel)
            await channel.channel_ready()
            ends = time.monotonic() + deadline
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Answer(answer_pb2.AnswerRequest(question="hang"), timeout=deadline)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if servicer.ends - ends > 0.01 * servicer.left:
                return False
            await happens(lambda: counted(registry, "DEADLINE_EXCEEDED") == 1)
            assert counted(registry, "CANCELLED") == 0
            return True
    finally:
        await server.drain(0)


async def test_a_deadline_that_passes_while_a_reply_is_sent_is_counted_as_one(
    registry: CollectorRegistry,
) -> None:
    async def handler(_request: Any, _context: Any) -> AsyncIterator[bytes]:
        yield b"reply"

    async def found(_details: Any) -> Any:
        return grpc.unary_stream_rpc_method_handler(handler)

    left = [60.0, 0.0]
    context = SimpleNamespace(
        invocation_metadata=tuple,
        time_remaining=lambda: left.pop(0),
        set_trailing_metadata=lambda _pairs: None,
    )
    details: Any = SimpleNamespace(method=f"/{SERVICE}/Answer")
    intercepted = await CallInterceptor(RpcMetrics(registry)).intercept_service(found, details)
    replies = intercepted.unary_stream(b"", context)
    assert await anext(replies) == b"reply"
    await replies.aclose()  # as the server does when a reply cannot be sent
    assert counted(registry, "DEADLINE_EXCEEDED") == 1


@pytest.mark.parametrize("deadline", [60.0, None])
async def test_a_client_that_goes_away_is_counted_as_cancelled(
    channel: grpc.aio.Channel,
    registry: CollectorRegistry,
    servicer: Servicer,
    deadline: float | None,
) -> None:
    stub = answer_pb2_grpc.AnswerServiceStub(channel)
    call = stub.Answer(answer_pb2.AnswerRequest(question="hang"), timeout=deadline)
    waiting = asyncio.ensure_future(call)
    await asyncio.wait_for(servicer.hanging.wait(), LONG)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await happens(lambda: counted(registry, "CANCELLED") == 1)
    assert counted(registry, "DEADLINE_EXCEEDED") == 0


@pytest.mark.parametrize("data", [b"\x0a\x02\xff\xfe", b"\xff\xff\xff", b"\x0a\xff"])
async def test_bytes_that_are_no_message_are_the_clients_mistake(
    channel: grpc.aio.Channel, data: bytes
) -> None:
    raw: Any = channel.unary_unary(f"/{SERVICE}/Answer", request_serializer=bytes)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await raw(data, timeout=LONG)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert violated(caught.value) == ["request"]


def violated(error: grpc.aio.AioRpcError) -> list[str]:
    metadata = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    bad = error_details_pb2.BadRequest()
    assert status.details[0].Unpack(bad)
    return [violation.field for violation in bad.field_violations]


async def test_an_unknown_method_is_unimplemented(channel: grpc.aio.Channel) -> None:
    raw: Any = channel.unary_unary(f"/{SERVICE}/Guess", request_serializer=bytes)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await raw(b"", timeout=LONG)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_health_follows_readiness_per_service_and_to_watchers(
    server: Server, channel: grpc.aio.Channel
) -> None:
    health = health_pb2_grpc.HealthStub(channel)

    async def status(service: str) -> int:
        return int((await health.Check(health_pb2.HealthCheckRequest(service=service))).status)

    watched = health.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
    seen = [(await watched.read()).status]
    assert await status(SERVICE) == NOT_SERVING
    await server.set_serving(True)
    assert await status(SERVICE) == await status("") == SERVING
    seen.append((await watched.read()).status)
    await server.set_serving(False)
    seen.append((await watched.read()).status)
    assert seen == [NOT_SERVING, SERVING, NOT_SERVING]
    watched.cancel()


async def test_reflection_names_the_services(channel: grpc.aio.Channel) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    call = stub.ServerReflectionInfo()
    await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    await call.done_writing()
    reply = await call.read()
    names = {service.name for service in reply.list_services_response.service}
    assert {SERVICE, "grpc.health.v1.Health"} <= names


async def test_two_servers_never_share_a_port(
    server: Server, channel: grpc.aio.Channel, registry: CollectorRegistry
) -> None:
    taken = channel.get_state  # the first server is up
    assert taken is not None
    port = await Server(
        services=[], interceptor=CallInterceptor(RpcMetrics(CollectorRegistry()))
    ).start("127.0.0.1:0")
    other = Server(services=[], interceptor=CallInterceptor(RpcMetrics(CollectorRegistry())))
    with pytest.raises(UnavailableError, match="cannot listen"):
        await other.start(f"127.0.0.1:{port}")


@contextlib.asynccontextmanager
async def asking(
    servicer: answer_pb2_grpc.AnswerServiceServicer, begun: asyncio.Event
) -> AsyncIterator[tuple[Server, asyncio.Future[Any]]]:
    """Asks a server of `servicer`; yields the server and the call, which sets `begun` at first."""
    server = new_server(SERVICE)
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(servicer, server.grpc)
    port = await server.start("127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        running = asyncio.ensure_future(ask(channel, "x"))
        await asyncio.wait_for(begun.wait(), LONG)
        yield server, running


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the server wait for cancellations and cleanups however slow the machine is."""
    monkeypatch.setattr("winnow.rpc.message_interceptor.CANCEL_SECONDS", LONG)
    monkeypatch.setattr("winnow.rpc.message_interceptor._CLEANUP_SECONDS", LONG)


async def test_draining_lets_running_calls_end() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(answer_pb2_grpc.AnswerServiceServicer):
        async def Answer(self, request: Any, context: Any) -> Any:
            begun.set()
            await go_on.wait()
            return answer_pb2.AnswerResponse(has_answer=True)

    async with asking(Slow(), begun) as (server, running):
        draining = asyncio.create_task(server.drain(LONG))
        go_on.set()
        assert (await running).has_answer
        await draining


async def test_draining_lets_running_streams_of_replies_end() -> None:
    go_on = asyncio.Event()

    async def handler(_request: bytes, _context: Any) -> AsyncIterator[bytes]:
        yield b"one"
        await go_on.wait()
        yield b"two"

    server = replying(handler, service=SERVICE)
    port = await server.start("127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        send: Any = channel.unary_stream(f"/{SERVICE}/Send")
        replies = send(b"", timeout=LONG)
        assert await replies.read() == b"one"
        draining = asyncio.create_task(server.drain(LONG))
        asyncio.get_running_loop().call_later(2 * _STREAM_END_SECONDS, go_on.set)
        assert await replies.read() == b"two"
        assert await replies.read() is grpc.aio.EOF
        await draining


@pytest.mark.usefixtures("unhurried")
async def test_draining_waits_until_cancelled_calls_have_cleaned_up() -> None:
    """Otherwise the event loop ends first, and gRPC logs a traceback for each of these calls."""
    begun, cleaning, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    cleaned_up = False

    class Slow(answer_pb2_grpc.AnswerServiceServicer):
        async def Answer(self, request: Any, context: Any) -> Any:
            nonlocal cleaned_up
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cleaning.set()
                await go_on.wait()
                cleaned_up = True

    async with asking(Slow(), begun) as (server, running):
        draining = asyncio.create_task(server.drain(0))
        await asyncio.wait_for(cleaning.wait(), LONG)
        asyncio.get_running_loop().call_later(0.2, go_on.set)
        await draining
        assert cleaned_up
        with pytest.raises(grpc.aio.AioRpcError):
            await running


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("messages", ["unary_stream", "stream_stream"])
async def test_draining_waits_until_cancelled_streams_of_replies_have_cleaned_up(
    messages: str,
) -> None:
    """Also if a handler waits for a client that does not read."""
    handler = Cleaning()
    server = replying(handler, messages)
    deaf = await deaf_caller(await server.start("127.0.0.1:0"), "/test.Replies/Send")
    draining = asyncio.create_task(server.drain(0))
    await handler.clean_up_slowly()
    await draining
    assert handler.cleaned_up.done()
    await deaf.close()


@pytest.mark.usefixtures("unhurried")
async def test_a_caller_that_leaves_does_not_interrupt_the_cleanup_of_a_handler() -> None:
    handler = Cleaning()
    server = replying(handler)
    deaf = await deaf_caller(await server.start("127.0.0.1:0"), "/test.Replies/Send")
    await deaf.close()
    await handler.clean_up_slowly()
    assert await asyncio.wait_for(handler.cleaned_up, LONG)
    await server.drain(0)


async def test_draining_does_not_wait_for_a_cleanup_without_end() -> None:
    """It would take the whole grace time although nobody waits for a reply."""
    begun, cleaning = asyncio.Event(), asyncio.Event()

    class Endless(answer_pb2_grpc.AnswerServiceServicer):
        async def Answer(self, request: Any, context: Any) -> Any:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cleaning.set()
                await asyncio.Event().wait()

    async with asking(Endless(), begun) as (server, running):
        running.cancel()
        await asyncio.wait_for(cleaning.wait(), LONG)
        await asyncio.wait_for(server.drain(10 * LONG), LONG)


class Cleaning:
    """A handler of a stream of replies, which takes a while to clean up."""

    def __init__(self) -> None:
        self._begun, self._go_on = asyncio.Event(), asyncio.Event()
        self.cleaned_up: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether the cleanup ended without an interruption."""

    async def __call__(self, _request: Any, _context: Any) -> AsyncIterator[bytes]:
        try:
            yield b"reply"
        finally:
            self._begun.set()
            try:
                await self._go_on.wait()
            finally:
                self.cleaned_up.set_result(self._go_on.is_set())

    async def clean_up_slowly(self) -> None:
        """Waits until the cleanup has begun, and lets it end a fifth of a second later."""
        await asyncio.wait_for(self._begun.wait(), LONG)
        asyncio.get_running_loop().call_later(0.2, self._go_on.set)


def replying(
    handler: Callable[..., AsyncIterator[bytes]],
    messages: str = "unary_stream",
    service: str = "test.Replies",
) -> Server:
    """Returns a server of a method `Send` with a stream of replies."""
    made = getattr(grpc, f"{messages}_rpc_method_handler")(handler, request_deserializer=bytes)
    server = new_server(SERVICE)
    server.grpc.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {"Send": made}),)
    )
    return server


async def test_only_the_server_itself_cancels_calls_at_the_end_of_the_grace_time(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two cancellations, one of them by gRPC, could crash the process."""
    stops = Stops(server, monkeypatch)
    deaf = await deaf_caller(await server.start("127.0.0.1:0"))
    await server.drain(0.4)
    assert stops.cancellations == 1
    await deaf.close()


async def test_a_server_that_is_drained_twice_at_once_cancels_calls_once_at_a_time(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the second cancellation could use a server that the first one has freed."""
    stops = Stops(server, monkeypatch)
    deaf = await deaf_caller(await server.start("127.0.0.1:0"))
    await asyncio.gather(*(server.drain(0) for _ in range(3)))
    assert stops.cancellations == 3
    assert stops.most_at_once == 1
    await deaf.close()


async def test_a_drain_that_is_cancelled_cancels_the_calls_first(servicer: Servicer) -> None:
    server = new_server(SERVICE)
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(servicer, server.grpc)
    port = await server.start("127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        running = asyncio.ensure_future(ask(channel, "hang"))
        await asyncio.wait_for(servicer.hanging.wait(), LONG)
        draining = asyncio.create_task(server.drain(10 * LONG))
        await turn()
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(draining, LONG)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await running
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


class Stops:
    """Counts how often a server tells gRPC to cancel the running calls."""

    def __init__(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cancellations = self.most_at_once = self._at_once = 0
        self._stop = server.grpc.stop
        monkeypatch.setattr(server.grpc, "stop", self._recorded)

    async def _recorded(self, grace: float | None) -> None:
        cancels = grace is None or grace < 86_400
        self.cancellations += cancels
        self._at_once += cancels
        self.most_at_once = max(self.most_at_once, self._at_once)
        await self._stop(grace)
        self._at_once -= cancels


async def test_a_watcher_that_leaves_takes_nothing_from_the_others(
    server: Server, channel: grpc.aio.Channel
) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    one, other = (health.Watch(health_pb2.HealthCheckRequest(service=SERVICE)) for _ in range(2))
    assert (await one.read()).status == (await other.read()).status == NOT_SERVING
    one.cancel()
    raw: Any = channel.unary_unary(f"/{SERVICE}/Answer", request_serializer=bytes)
    await raw(b"", timeout=LONG)  # by now the server has seen that it left
    await server.set_serving(True)
    assert (await asyncio.wait_for(other.read(), LONG)).status == SERVING
    other.cancel()


async def test_a_watcher_of_the_health_does_not_delay_the_end(
    server: Server, channel: grpc.aio.Channel
) -> None:
    await server.set_serving(True)
    watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
    assert (await watched.read()).status == SERVING
    draining = asyncio.create_task(server.drain(60))
    assert (await watched.read()).status == NOT_SERVING
    await asyncio.wait_for(draining, LONG)


async def deaf_caller(port: int, method: str = "/grpc.health.v1.Health/Watch") -> http2.Peer:
    """Calls a method, by default the watch of the health, and reads nothing of the reply."""
    peer = await http2.Peer.connect(port, window=0)
    await peer.send(http2.call(method) + http2.whole(b""))
    await asyncio.wait_for(peer.begun(), LONG)
    return peer


async def test_a_watcher_that_does_not_read_takes_nothing_from_the_others(server: Server) -> None:
    port = await server.start("127.0.0.1:0")
    deaf = await deaf_caller(port)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await asyncio.wait_for(watched.read(), LONG)).status == NOT_SERVING
        for ready in (True, False, True):
            await server.set_serving(ready)
            told = (await asyncio.wait_for(watched.read(), LONG)).status
            assert told == (SERVING if ready else NOT_SERVING)
        watched.cancel()
    await deaf.close()


async def test_a_watcher_that_does_not_read_does_not_delay_the_end(server: Server) -> None:
    deaf = await deaf_caller(await server.start("127.0.0.1:0"))
    await server.set_serving(True)
    await asyncio.wait_for(server.drain(60), LONG)
    await deaf.close()


async def test_the_number_of_pending_calls_is_bounded(server: Server) -> None:
    """They take memory, even if their caller has ended them at once."""
    port = await server.start("127.0.0.1:0")
    streams = range(1, 2_001, 2)
    calls = b"".join(http2.call(f"/{SERVICE}/Answer", stream=each) for each in streams)
    with contextlib.ExitStack() as leaving:
        peers = []
        # without a turn of the event loop, so nothing is looked at meanwhile
        for _ in range(_PENDING // len(streams) + 1):
            peer = leaving.enter_context(socket.create_connection(("127.0.0.1", port), LONG))
            peer.sendall(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0) + calls)
            peers.append(peer)
        assert any_is_told(peers, b"grpc-status")


def any_is_told(peers: Sequence[socket.socket], words: bytes) -> bool:
    """Waits until one of them is sent `words`; false if nobody is sent anything for a while."""
    while ready := select.select(peers, [], [], LONG)[0]:
        if any(words in peer.recv(65_536) for peer in ready):
            return True
    return False


async def test_a_server_is_alive_before_it_is_ready_and_while_it_leaves(
    server: Server, channel: grpc.aio.Channel
) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    for ready in (False, True, False):
        await server.set_serving(ready)
        said = await health.Check(health_pb2.HealthCheckRequest(service="live"))
        assert said.status == SERVING


async def test_the_health_of_an_unknown_service_is_not_found(channel: grpc.aio.Channel) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await health.Check(health_pb2.HealthCheckRequest(service="winnow.v1.Guess"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    watched = health.Watch(health_pb2.HealthCheckRequest(service="winnow.v1.Guess"))
    unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    assert (await watched.read()).status == unknown
    watched.cancel()


async def test_nothing_long_that_a_client_sends_is_logged_or_sent_back(
    channel: grpc.aio.Channel,
) -> None:
    long = "a" * 7_000
    health: Any = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=bytes)
    raw: Any = channel.unary_unary(f"/{SERVICE}/Answer", request_serializer=bytes)
    service = health_pb2.HealthCheckRequest(service=long).SerializeToString()
    metadata = ((request_id.KEY, long), ("x-winnow-client", long))
    calls: tuple[Any, ...] = (
        health(service, timeout=LONG),
        raw(long.encode(), timeout=LONG, metadata=metadata),
        raw(answer_pb2.AnswerRequest(question="bad").SerializeToString(), metadata=metadata),
        channel.unary_unary(f"/{SERVICE}/{long}", request_serializer=bytes)(b"", timeout=LONG),
    )
    with capture_logs() as logged:
        for call in calls:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert "a" * 201 not in f"{caught.value.details()} {caught.value.trailing_metadata()}"
    assert "a" * 201 not in str(logged)
