"""Waiting for the reply of a call."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from heap_in_use import counted, kept
from tenacious import LONG, happens, turn

from winnow.rpc.replying import reply_of

CALLS = 4_000
KEPT = 600
"""Bytes for each call: gRPC's server keeps some, too; its client kept 975."""


@dataclass
class Server:
    """Replies when it is told to."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    last: bytes = b""
    """The request that came last."""
    asked: int = 0
    given_up: int = 0

    async def reply(self, request: bytes, context: Any) -> bytes:
        self.asked += 1
        self.last = request
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if request == b"fail":
            await context.abort(grpc.StatusCode.NOT_FOUND, "not here")
        return request


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def ask(server: Server) -> AsyncIterator[Callable[[bytes], Any]]:
    class Everything(grpc.GenericRpcHandler):
        def service(self, _: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(server.reply)

    made = grpc.aio.server()
    made.add_generic_rpc_handlers((Everything(),))
    port = made.add_insecure_port("127.0.0.1:0")
    await made.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        method: Any = channel.unary_unary("/any/Method")
        yield lambda request: reply_of(method(request, timeout=60.0))
    await made.stop(None)


async def test_grpc_calls_have_the_cython_call_underneath() -> None:
    """It is not public, and `reply_of` cancels it."""
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        method: Any = channel.unary_unary("/any/Method")
        call = method(b"", timeout=60.0)
        assert not call._cython_call.done()
        call._cython_call.cancel("nobody waits for it")
        with pytest.raises(asyncio.CancelledError):
            await call
        assert call._cython_call.done()


async def test_a_call_that_cannot_be_sent_fails_at_once() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        method: Any = channel.unary_unary("/any/Method")
        async with asyncio.timeout(LONG):
            with pytest.raises(Exception, match="execute_batch"):
                await reply_of(method(b"", metadata=(("not-ascii", "\N{SNOWMAN}"),)))


async def test_a_reply_is_returned(server: Server, ask: Callable[[bytes], Any]) -> None:
    server.go_on.set()
    assert await ask(b"hello") == b"hello"


async def test_what_went_wrong_is_raised(server: Server, ask: Callable[[bytes], Any]) -> None:
    server.go_on.set()
    with pytest.raises(grpc.aio.AioRpcError, match="not here"):
        await ask(b"fail")


async def test_a_call_that_is_given_up_ends_on_the_server(
    server: Server, ask: Callable[[bytes], Any]
) -> None:
    waiting = asyncio.create_task(ask(b"hello"))
    await happens(lambda: server.asked == 1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await happens(lambda: server.given_up == 1)


async def test_a_call_that_is_given_up_at_once_is_not_sent_or_ends_on_the_server(
    server: Server, ask: Callable[[bytes], Any]
) -> None:
    waiting = asyncio.create_task(ask(b"hello"))
    await turn()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    again = asyncio.create_task(ask(b"again"))
    # nothing that was sent before it comes after it
    await happens(lambda: server.last == b"again")
    await happens(lambda: server.asked == 1 + server.given_up)
    server.go_on.set()
    assert await again == b"again"


@counted
async def test_calls_that_are_given_up_leave_nothing_behind(
    server: Server, ask: Callable[[bytes], Any]
) -> None:
    """gRPC never frees what it keeps for a call whose waiting task is cancelled."""

    async def give_up(calls: int) -> None:
        for _ in range(calls // 50):
            before = server.asked
            tasks = [asyncio.create_task(ask(b"hello")) for _ in range(50)]
            await happens(lambda: server.asked == before + 50)  # noqa: B023 (at once)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await happens(lambda: server.given_up == server.asked)

    assert await kept(give_up, CALLS, KEPT) < KEPT
