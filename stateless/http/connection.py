"""A connection, as uvicorn serves it, that tells when it waits and when it is busy.

This file alone knows what uvicorn and asyncio do not promise. Tried with uvicorn 0.54 and
Python 3.11; `tests/stateless/http/test_libraries.py` fails by name when one of them moves:

* uvicorn's `H11Protocol`, its `handle_events`, `send_400_response`, `conn`, `cycle` and `flow`;
* uvicorn's `ServerState`, whose `tasks` are the requests in hand;
* asyncio's `_ssl_protocol._transport`, the transport below TLS. Only it knows how many encrypted
  bytes wait, and a client that takes none of them must be cut off.
"""

import asyncio
import socket
import ssl
from functools import partial
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from winnow.stateless.http.connection_limiter import ConnectionLimiter
from winnow.stateless.http.parsing import RationedConnection, malformed

KEY = "connection"
"""Where the state of an ASGI scope has the connection."""


class Requests:
    """The requests in hand of all connections of a server."""

    def __init__(self) -> None:
        self.state = ServerState()

    async def end(self) -> None:
        """Waits until the tasks of all requests have ended."""
        if tasks := tuple(self.state.tasks):
            await asyncio.wait(tasks)


class HttpConnection(H11Protocol):
    """A connection that reports to a `ConnectionLimiter`.

    uvicorn bounds the time between two requests, but not that of a request's headers.
    """

    def __init__(
        self, limiter: ConnectionLimiter, config: Config, requests: Requests, age: float
    ) -> None:
        """`limiter` and `requests` are shared by all connections of the server; `age`: seconds
        after which the connection is to end.
        """
        super().__init__(config, requests.state, {KEY: self})
        self._old_at = self.loop.time() + age
        self._limiter, self._idle = limiter, False
        self._arriving: asyncio.Task[Any]
        self.conn = self._events = RationedConnection()
        self._further: asyncio.Handle | None = None
        """Handling of events that have arrived already."""

    def arrive(self, opened: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Counts the connection; over TLS before the handshake, which may never end."""
        made = self.loop.connect_accepted_socket(lambda: self, opened, ssl=tls)
        self._arriving = self.loop.create_task(made)
        self._arriving.add_done_callback(partial(self._arrived, opened))
        self._limiter.came(self)

    def _arrived(self, opened: socket.socket, arriving: asyncio.Task[Any]) -> None:
        if not arriving.cancelled():
            arriving.exception()  # most often of a handshake: the other side's mistake
        if self._arrives():
            opened.close()
            self._limiter.left(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expects the first request."""
        # else the body of a reply waits up to 40 ms until the client confirms the headers; asyncio
        # sets this by itself for sockets that it opens
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self._limiter.spoke(self)

    def data_received(self, data: bytes) -> None:
        """Takes the first bytes after a reply as the beginning of the next request."""
        if self._idle:
            self._idle = False
            self._limiter.spoke(self)
        super().data_received(data)

    def handle_events(self) -> None:
        """Handles some events, and the others after those of other connections."""
        self._events.again()
        super().handle_events()
        if self._events.interrupted and self._further is None and not self.transport.is_closing():
            self._further = self.loop.call_soon(self._go_on)
            self.transport.pause_reading()

    def _go_on(self) -> None:
        self._further = None
        if self.transport.is_closing():
            return
        self.handle_events()
        if self._further is None and not self.flow.read_paused:
            self.transport.resume_reading()

    def send_400_response(self, _msg: str) -> None:
        """Refuses bytes that are no HTTP, unless a reply was begun: they may be in a body."""
        if self.cycle is not None:  # it has no caller any more
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            # not by h11, which allows no body if the request before was a HEAD
            self.transport.write(malformed())
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Frees its place."""
        super().connection_lost(exc)
        self._limiter.left(self)

    def began(self) -> None:
        """Notes that the headers of a request are here."""
        self._limiter.began(self)

    def ended(self) -> None:
        """Notes that the reply was handed over."""
        self._idle = True
        self._limiter.ended(self)

    @property
    def old(self) -> bool:
        """Whether the client should open a new connection."""
        return self.loop.time() >= self._old_at

    @property
    def unsent(self) -> int:
        """Bytes that wait for the other side to take them."""
        # over TLS asyncio counts bytes that are not encrypted yet, and has no name for the rest
        below = getattr(getattr(self.transport, "_ssl_protocol", None), "_transport", None)
        encrypted: int = below.get_write_buffer_size() if below is not None else 0
        return self.transport.get_write_buffer_size() + encrypted

    def close(self) -> None:
        """Closes it once everything was sent."""
        if self._arrives():
            self._arriving.cancel()
        else:
            self.transport.close()

    def abort(self) -> None:
        """Closes it at once, even if bytes wait to be sent."""
        if self._arrives():
            self._arriving.cancel()
        else:
            self.transport.abort()

    def _arrives(self) -> bool:
        """Whether it is still being opened, for example in a TLS handshake."""
        return self.transport is None


def connection_of(scope: Any) -> HttpConnection:
    """The connection of a request."""
    found = scope["state"][KEY]
    assert isinstance(found, HttpConnection)
    return found
