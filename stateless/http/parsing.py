"""HTTP as h11 reads it, a few events at a time, and more strictly; the reply to what is no HTTP.

uvicorn takes all events that the bytes of one read make. A body in chunks of one byte makes forty
thousand of them, for which all other connections would wait half a second.
"""

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import h11
import structlog

from winnow.rpc import request_id
from winnow.stateless.http.headers import ALWAYS
from winnow.stateless.http.json_text import written
from winnow.stateless.http.problems import MEDIA_TYPE, HttpRefusedError, problem_of

LONGEST_HEAD = 16 * 1024
"""Bytes of the headers of a request."""
_AT_ONCE = 32
"""Events in a row; one takes some 12 microseconds."""
_BLANK_LINE = re.compile(rb"\n\r?\n")
_LENGTHS = {b"content-length", b"transfer-encoding"}


class RationedConnection(h11.Connection):
    """Gives a few events in a row, then reports that it needs data until `again` is called."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, LONGEST_HEAD)
        self._left = _AT_ONCE
        self.interrupted = False
        """Whether there may be further events."""

    def again(self) -> None:
        """Allows as many events once more."""
        self._left, self.interrupted = _AT_ONCE, False

    def next_event(self) -> Any:
        """The next event of h11, which is stricter here.

        Raises:
            h11.RemoteProtocolError: it is no HTTP; or the headers of a request are too long,
                even if they come at once; or two headers give the length of its body, of which a
                proxy may believe the other one.

        """
        if not self._left:
            self.interrupted = True
            return h11.NEED_DATA
        self._left -= 1
        if self.their_state is h11.IDLE:
            _check_head(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Request):
            _check_length(event)
        return event


def _check_head(held: bytes) -> None:
    """Bounds headers that came with their end; h11 bounds the others."""
    if len(held) > LONGEST_HEAD and not _BLANK_LINE.search(held, 0, LONGEST_HEAD):
        raise h11.RemoteProtocolError("headers are too long", error_status_hint=431)


def _check_length(request: h11.Request) -> None:
    if {name for name, _ in request.headers} >= _LENGTHS:
        raise h11.RemoteProtocolError("content-length beside transfer-encoding")


_log = structlog.get_logger("stateless.http")
_WRONG = HttpRefusedError(HTTPStatus.BAD_REQUEST, "request", "is no HTTP/1.1, or too long")


def malformed() -> bytes:
    """The whole reply to bytes that are no HTTP: there is no request for an ASGI application."""
    chosen = request_id.accept(None)
    _log.info("request refused", error=str(_WRONG))
    body = written(problem_of(_WRONG, chosen))
    headers = {
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        **ALWAYS,
        "date": formatdate(usegmt=True),
        request_id.KEY: chosen,
        "connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 400 Bad Request\r\n{lines}\r\n".encode() + body
