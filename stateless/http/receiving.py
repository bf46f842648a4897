"""Receives the body of a request, and notices when its caller closes the connection."""

import asyncio
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.types import Receive

from winnow.quoting import quoted
from winnow.stateless.http.headers import Headers, find
from winnow.stateless.http.problems import HttpRefusedError

_READ_ON = 1 << 20
"""Bytes beyond the largest body that are read and dropped. So the sender reads what is wrong, and
not that the connection was reset."""


class GoneError(Exception):
    """The caller has closed its connection."""


class Body:
    """The body of one request; `winnow.rpc.bounded_receive` reads it like a message of gRPC."""

    def __init__(self, receive: Receive, largest: int) -> None:
        """`largest`: most bytes of the body."""
        self._receive, self._largest = receive, largest

    async def read(self) -> bytes:
        """Reads the whole body.

        Raises:
            HttpRefusedError: the body is too large.
            GoneError: the caller closed the connection before the end.

        """
        parts: list[bytes] = []
        size, more = 0, True
        while more and size <= self._largest + _READ_ON:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                raise GoneError
            part: bytes = event.get("body", b"")
            size, more = size + len(part), bool(event.get("more_body"))
            if size <= self._largest:
                parts.append(part)
            else:
                parts.clear()
        if size > self._largest:
            wrong = f"has more than {self._largest} bytes: send a smaller one, or several"
            raise HttpRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "request", wrong)
        return b"".join(parts)


def check_media_type(headers: Headers) -> None:
    """Raises HttpRefusedError if a body is no plain JSON.

    Pages of other sites can send other types without asking the browser's permission, and a
    compressed body may be larger than it seems.
    """
    kind = find(headers, "content-type")
    if kind.partition(";")[0].strip().lower() != "application/json":
        said = f"is {quoted(kind)}" if kind else "is missing"
        _refuse("content-type", f"{said}: send application/json")
    if (coding := find(headers, "content-encoding")) not in ("", "identity"):
        _refuse("content-encoding", f"is {quoted(coding)}: send the body as it is")


def _refuse(field: str, description: str) -> None:
    raise HttpRefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, field, description)


Result = TypeVar("Result")


async def until_gone(receive: Receive) -> None:
    """Returns when the caller has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_there(work: Coroutine[Any, Any, Result], receive: Receive) -> Result:
    """The result of work, which is cancelled if its caller goes.

    `receive` is that of a request whose body was read. Raises GoneError if the caller has gone.
    """
    working = asyncio.create_task(work)
    gone = asyncio.create_task(until_gone(receive))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise GoneError
        return working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.wait((working, gone))
