"""Receives the body of a request, and detects that the caller has disconnected."""

import asyncio
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.types import Receive

from winnow.quoting import quoted
from winnow.stateless.http.headers import Headers, header_value
from winnow.stateless.http.problems import HttpRefusedError

_MAX_DROPPED_BYTES, _MAX_DROPPED_OF_KNOWN_LENGTH = 1 << 20, 64 << 20
"""Maximum number of bytes beyond the limit of a body that are read and dropped, if its length is
unknown and known. So the sender gets the error instead of a reset connection, since most clients
read a reply only after they have sent the whole body.
"""


class ClientDisconnectedError(Exception):
    """The caller has closed its connection."""


class RequestBody:
    """The body of one request. `winnow.rpc.bounded_receive` reads it like a gRPC message."""

    def __init__(self, receive: Receive, max_bytes: int, has_length: bool = False) -> None:
        """`has_length`: whether a header gave the length of the body."""
        self._receive, self._max_bytes = receive, max_bytes
        self._max_dropped = _MAX_DROPPED_OF_KNOWN_LENGTH if has_length else _MAX_DROPPED_BYTES

    async def read(self) -> bytes:
        """Reads the whole body.

        Raises:
            HttpRefusedError: the body is too large.
            ClientDisconnectedError: the caller closed the connection before the end of the body.

        """
        parts: list[bytes] = []
        size, more = 0, True
        while more and size <= self._max_bytes + self._max_dropped:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                raise ClientDisconnectedError
            part: bytes = event.get("body", b"")
            size, more = size + len(part), bool(event.get("more_body"))
            if size <= self._max_bytes:
                parts.append(part)
            else:
                parts.clear()
        if size > self._max_bytes:
            problem = f"has more than {self._max_bytes} bytes: send a smaller request, or several"
            raise HttpRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "request", problem)
        return b"".join(parts)


def check_media_type(headers: Headers) -> None:
    """Raises HttpRefusedError unless the body is JSON without compression.

    Pages of other sites can send other types without a CORS preflight. A compressed body could
    exceed its limit.
    """
    kind = header_value(headers, "content-type")
    if kind.partition(";")[0].strip().lower() != "application/json":
        problem = f"is {quoted(kind)}" if kind else "is missing"
        _refuse("content-type", f"{problem}: send application/json")
    if (coding := header_value(headers, "content-encoding")) not in ("", "identity"):
        _refuse("content-encoding", f"is {quoted(coding)}: send the body without compression")


def _refuse(field: str, description: str) -> None:
    raise HttpRefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, field, description)


Result = TypeVar("Result")


async def until_disconnected(receive: Receive) -> None:
    """Waits until the caller closes its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(work: Coroutine[Any, Any, Result], receive: Receive) -> Result:
    """Returns the result of `work`. If the caller disconnects, cancels `work` and raises
    ClientDisconnectedError.

    The body of the request must have been read from `receive` before.
    """
    working = asyncio.create_task(work)
    disconnected = asyncio.create_task(until_disconnected(receive))
    try:
        await asyncio.wait((working, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnectedError
        return working.result()
    finally:
        for task in (working, disconnected):
            task.cancel()
        await asyncio.wait((working, disconnected))
