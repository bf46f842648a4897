"""The body of a request, read as a whole."""

from http import HTTPStatus

from starlette.types import Receive

from winnow.quoting import quoted
from winnow.stateless.http.headers import Headers, find
from winnow.stateless.http.problems import HttpRefusedError

_READ_ON = 1 << 20
"""Bytes beyond the largest body that are read and dropped, so that its sender reads what is wrong,
and not that the connection was reset."""


class GoneError(Exception):
    """The caller has closed its connection."""


class Body:
    """The body of one request, read by `winnow.rpc.bounded_receive` as messages of gRPC are."""

    def __init__(self, receive: Receive, largest: int) -> None:
        """`largest`: bytes that it may have."""
        self._receive, self._largest = receive, largest

    async def read(self) -> bytes:
        """All of it.

        Raises:
            HttpRefusedError: it is too large.
            GoneError: the caller went away before its end.

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

    Pages of other sites can send other types without being asked whether they may, and what is
    compressed may be larger than it seems.
    """
    kind = find(headers, "content-type")
    if kind.partition(";")[0].strip().lower() != "application/json":
        said = f"is {quoted(kind)}" if kind else "is missing"
        _refuse("content-type", f"{said}: send application/json")
    if (coding := find(headers, "content-encoding")) not in ("", "identity"):
        _refuse("content-encoding", f"is {quoted(coding)}: send the body as it is")


def _refuse(field: str, description: str) -> None:
    raise HttpRefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, field, description)
