"""A fake front that serves the web page over HTTP on a free port.

It runs in a separate thread, because calls to a browser block.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn
from google.protobuf import json_format
from google.protobuf.message import Message
from page_library import PageLibrary
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tenacious import LONG

from winnow.stateless.page.routes import page_routes
from winnow.v1 import answer_pb2, cluster_pb2

Problem = dict[str, Any]
"""A JSON object of type application/problem+json."""


class PageFront:
    """Keeps all requests; replies with `reply` and `shown`, which may be problems."""

    def __init__(self) -> None:
        self.address = ""
        self.stored = PageLibrary()
        self.clear()

    def clear(self) -> None:
        """Forgets all requests, and resets the replies."""
        self.reply: Message | Problem = answer_pb2.AnswerResponse()
        self.shown: Message | Problem = cluster_pb2.GetClusterResponse()
        self.requests: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.stored.clear()
        self.looks = 0
        self.go_on = threading.Event()
        self.go_on.set()

    def app(self) -> Starlette:
        ways = [
            Route("/v1/answer", self._answer, methods=["POST"]),
            Route("/v1/indexes/{index}/answer", self._answer, methods=["POST"]),
            Route("/v1/cluster", self._cluster),
        ]
        reading = [
            Route("/v1/documents", self.stored.documents),
            Route("/v1/passages", self.stored.page),
            Route("/v1/passages:get", self.stored.look_up, methods=["POST"]),
            Route("/openapi.json", self.stored.operations),
            Route("/v1/documents:convert", self.stored.convert, methods=["POST"]),
            Route("/v1/passages", self.stored.put_all, methods=["POST"]),
            Route("/v1/passages:deleteWhere", self.stored.delete_where, methods=["POST"]),
        ]
        return Starlette(routes=[*ways, *reading, *page_routes()])

    async def _answer(self, request: Request) -> Response:
        self.requests.append({**await request.json(), **request.path_params})
        self.headers = dict(request.headers)
        await asyncio.to_thread(self.go_on.wait, LONG)
        return _response(self.reply)

    async def _cluster(self, request: Request) -> Response:
        self.looks += 1
        return _response(self.shown)


def _response(said: Message | Problem) -> Response:
    if isinstance(said, Message):
        return JSONResponse(
            json_format.MessageToDict(said, always_print_fields_with_no_presence=True)
        )
    return JSONResponse(said, said["status"], media_type="application/problem+json")


class _Server(uvicorn.Server):
    """Sets `listening` once it accepts connections."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@contextlib.contextmanager
def page_front() -> Iterator[PageFront]:
    """Serves a fake front."""
    front = PageFront()
    config = uvicorn.Config(front.app(), port=0, log_level="error", lifespan="off")
    server = _Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    assert server.listening.wait(LONG), "the server did not start"
    port = server.servers[0].sockets[0].getsockname()[1]
    front.address = f"http://127.0.0.1:{port}"
    try:
        yield front
    finally:
        front.go_on.set()
        server.should_exit = True
        thread.join()
