"""HTTP as h11 reads it, a few events at a time, and more strictly.

uvicorn takes all events that the bytes of one read make. A body in chunks of one byte makes forty
thousand of them, for which everybody else would wait half a second.
"""

import re
from typing import Any

import h11

LONGEST_HEAD = 16 * 1024
"""Bytes of the headers of a request."""
_AT_ONCE = 32
"""Events in a row; one takes some 12 microseconds."""
_BLANK_LINE = re.compile(rb"\n\r?\n")
_LENGTHS = {b"content-length", b"transfer-encoding"}


class RationedConnection(h11.Connection):
    """Says that it needs data, when it has given enough for now."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, LONGEST_HEAD)
        self._left = _AT_ONCE
        self.interrupted = False
        """Whether it may have more events than it gave."""

    def again(self) -> None:
        """It may give as many once more."""
        self._left, self.interrupted = _AT_ONCE, False

    def next_event(self) -> Any:
        """As h11 has it; but refuses more of what is no HTTP.

        Raises:
            h11.RemoteProtocolError: it is no HTTP; or the headers of a request are too long,
                whether they come at once or not; or two of them say how long its body is, and
                what is before this server may believe the other one.

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
    """h11 bounds only headers whose end is not here yet."""
    if len(held) > LONGEST_HEAD and not _BLANK_LINE.search(held, 0, LONGEST_HEAD):
        raise h11.RemoteProtocolError("headers are too long", error_status_hint=431)


def _check_length(request: h11.Request) -> None:
    if {name for name, _ in request.headers} >= _LENGTHS:
        raise h11.RemoteProtocolError("content-length beside transfer-encoding")
