"""Runs the MCP server of a front: a request in, a response out.

The package `mcp` is imported at the first request. It takes a second and 30 MB, which a front
without agents need not spend.
"""

import asyncio
from collections.abc import Callable, Container
from contextvars import Context
from typing import TYPE_CHECKING, Any

from grpc import StatusCode
from starlette.responses import Response
from starlette.types import Message, Scope

from winnow.caller import message_of
from winnow.client.aio import AsyncClientApi
from winnow.deadline import MAX_SECONDS
from winnow.errors import WinnowError
from winnow.rpc.status import INTERNAL_MESSAGE, code_of
from winnow.uncancelled import run_uncancelled

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

_SENT_HEADERS = (b"content-type", b"allow")
"""Headers of the package's responses that are sent."""


class AgentServer:
    """Answers MCP messages over HTTP: without sessions, and with JSON instead of streams."""

    def __init__(self, open_manager: "Callable[[], StreamableHTTPSessionManager]") -> None:
        """`open_manager` imports the package, and returns a manager that does not run yet."""
        self._open_manager = open_manager
        self._manager: asyncio.Task[StreamableHTTPSessionManager] | None = None
        self._running: asyncio.Task[None] | None = None

    async def respond(self, scope: Scope, body: bytes) -> Response:
        """Answers the request with this body. A cancelled request cancels its calls."""
        if self._manager is None or _has_failed(self._manager):
            # without the context of this request: its caller is not that of later requests
            self._manager = asyncio.create_task(self._start(), context=Context())
        manager = await asyncio.shield(self._manager)
        collected = _CollectedResponse()
        await manager.handle_request(scope, _received(body), collected.send)
        return collected.response()

    async def close(self) -> None:
        """Ends the server, and cancels its requests."""
        tasks = [task for task in (self._manager, self._running) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await run_uncancelled(asyncio.wait(tasks))

    async def _start(self) -> "StreamableHTTPSessionManager":
        manager = await asyncio.to_thread(self._open_manager)
        started = asyncio.Event()

        async def run() -> None:
            async with manager.run():
                started.set()
                await asyncio.Event().wait()

        # in a separate task, since a manager must start and end in the same task
        self._running = asyncio.create_task(run())
        waiting: asyncio.Task[Any] = asyncio.create_task(started.wait())
        await asyncio.wait([waiting, self._running], return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            waiting.cancel()
            self._running.result()  # raises the error of its start
        return manager


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def manager_of(api: AsyncClientApi, calls: Container[str]) -> "StreamableHTTPSessionManager":
    """Returns a manager of MCP requests. Imports the package `mcp`.

    Args:
        api: what the tools call.
        calls: names of the calls that the front serves. Other tools are left out.

    """
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415

    from winnow.mcp.server import AgentIndex, open_server  # noqa: PLC0415
    from winnow.mcp.tools import TOOLS  # noqa: PLC0415

    index = AgentIndex(api=api, timeout=MAX_SECONDS, message_of=_visible_message)
    server = open_server(index, [each for each in TOOLS if each.call in calls])
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True)


def _visible_message(error: WinnowError) -> str:
    """Returns the message of an error, without details that the caller may not see."""
    is_internal = code_of(error) is StatusCode.INTERNAL
    return INTERNAL_MESSAGE if is_internal else message_of(error)


def _received(body: bytes) -> Callable[[], Any]:
    """Returns an ASGI `receive` for a body that was read. The caller handles disconnections."""
    events: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if events:
            return events.pop()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    return receive


class _CollectedResponse:
    """Collects the ASGI events of a response."""

    def __init__(self) -> None:
        self._start: Message = {"status": 500, "headers": []}
        self._body = bytearray()

    async def send(self, event: Message) -> None:
        """Takes an event of the response."""
        if event["type"] == "http.response.start":
            self._start = event
        else:
            self._body += event.get("body", b"")

    def response(self) -> Response:
        """Returns the response."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in self._start["headers"]
            if name.lower() in _SENT_HEADERS
        }
        return Response(bytes(self._body), self._start["status"], headers)
