"""Parses HTTP with h11: more strictly, and a limited number of events at a time.

uvicorn handles all events of one read before it serves other connections. A body in chunks of one
byte has forty thousand events, which take half a second.
"""

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import h11
import structlog

from winnow.rpc import request_id
from winnow.stateless.http.headers import ALWAYS
from winnow.stateless.http.json_text import message_to_json
from winnow.stateless.http.problems import MEDIA_TYPE, HttpRefusedError, problem_of

MAX_HEADER_BYTES = 16 * 1024
"""Limit of the headers of a request."""
_MAX_EVENTS = 32
"""Limit of events in a row; one takes about 12 microseconds."""
_BLANK_LINE = re.compile(rb"\n\r?\n")
_LENGTHS = {b"content-length", b"transfer-encoding"}


class RationedConnection(h11.Connection):
    """Returns a limited number of events, then reports that it needs data until `allow_more`."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEADER_BYTES)
        self._remaining = _MAX_EVENTS
        self.interrupted = False
        """Whether there may be further events."""

    def allow_more(self) -> None:
        """Allows the next events."""
        self._remaining, self.interrupted = _MAX_EVENTS, False

    def next_event(self) -> Any:
        """The next event of h11, after further checks.

        Raises:
            h11.RemoteProtocolError: the bytes are not HTTP, the headers are too long, or two
                headers set the length of the body. A proxy might use the other header.

        """
        if not self._remaining:
            self.interrupted = True
            return h11.NEED_DATA
        self._remaining -= 1
        if self.their_state is h11.IDLE:
            _check_header_size(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Request):
            _check_length(event)
        return event


def _check_header_size(data: bytes) -> None:
    """Limits headers that arrived completely; h11 limits incomplete ones."""
    if len(data) > MAX_HEADER_BYTES and not _BLANK_LINE.search(data, 0, MAX_HEADER_BYTES):
        raise h11.RemoteProtocolError("headers are too long", error_status_hint=431)


def _check_length(request: h11.Request) -> None:
    if {name for name, _ in request.headers} >= _LENGTHS:
        raise h11.RemoteProtocolError("content-length beside transfer-encoding")


_log = structlog.get_logger("stateless.http")
_NOT_HTTP = HttpRefusedError(HTTPStatus.BAD_REQUEST, "request", "is not HTTP/1.1, or too long")


def bad_request_reply() -> bytes:
    """The whole reply to bytes that are not HTTP; they never reach the ASGI application."""
    new_id = request_id.accept(None)
    _log.info("request refused", error=str(_NOT_HTTP))
    body = message_to_json(problem_of(_NOT_HTTP, new_id))
    headers = {
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        **ALWAYS,
        "date": formatdate(usegmt=True),
        request_id.KEY: new_id,
        "connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 400 Bad Request\r\n{lines}\r\n".encode() + body
