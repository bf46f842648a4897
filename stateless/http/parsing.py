"""Parses HTTP with h11, but more strictly and with a limited number of events at a time.

The limit is needed because uvicorn handles all events of one read before it serves other
connections. If a body has chunks of one byte, one read has forty thousand events, which take half a
second.
"""

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import h11
import structlog

from winnow.rpc import request_id
from winnow.stateless.http.headers import DEFAULT_HEADERS
from winnow.stateless.http.json_text import message_to_json
from winnow.stateless.http.problems import MEDIA_TYPE, HttpRefusedError, problem_of

MAX_HEADER_BYTES = 16 * 1024
"""Maximum size of the headers of a request, in bytes."""
_MAX_EVENTS = 32
"""Maximum number of consecutive events. An event takes about 12 microseconds."""
_BLANK_LINE = re.compile(rb"\n\r?\n")
_LENGTHS = {b"content-length", b"transfer-encoding"}


class RationedConnection(h11.Connection):
    """An h11 connection that returns a limited number of events.

    After these events it reports that it needs data, until `allow_more` is called.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEADER_BYTES)
        self._remaining = _MAX_EVENTS
        self.interrupted = False
        """Whether events may be left."""

    def allow_more(self) -> None:
        """Allows the next events."""
        self._remaining, self.interrupted = _MAX_EVENTS, False

    def next_event(self) -> Any:
        """Returns the next event of h11, after additional checks.

        Raises:
            h11.RemoteProtocolError: the bytes are not HTTP, the headers are too long, or two
                headers set the length of the body. A proxy might use the other of the two headers.

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
    """Limits headers that have arrived completely. h11 limits only incomplete headers."""
    if len(data) > MAX_HEADER_BYTES and not _BLANK_LINE.search(data, 0, MAX_HEADER_BYTES):
        raise h11.RemoteProtocolError("headers are too long", error_status_hint=431)


def _check_length(request: h11.Request) -> None:
    if {name for name, _ in request.headers} >= _LENGTHS:
        raise h11.RemoteProtocolError("both content-length and transfer-encoding are set")


_log = structlog.get_logger("stateless.http")
_NOT_HTTP = HttpRefusedError(HTTPStatus.BAD_REQUEST, "request", "is not HTTP/1.1, or too long")


def bad_request_reply() -> bytes:
    """Returns the bytes of the reply to bytes that are not HTTP.

    Such bytes never reach the ASGI application, which builds all other replies.
    """
    new_id = request_id.accept_or_create(None)
    _log.info("request refused", error=str(_NOT_HTTP))
    body = message_to_json(problem_of(_NOT_HTTP, new_id))
    headers = {
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        **DEFAULT_HEADERS,
        "date": formatdate(usegmt=True),
        request_id.KEY: new_id,
        "connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 400 Bad Request\r\n{lines}\r\n".encode() + body
