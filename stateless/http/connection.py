"""A connection of uvicorn that reports to a limiter when it waits and when it is busy.

Only this file depends on internals of uvicorn and asyncio. It is tested with uvicorn 0.54 and
Python 3.11. `tests/stateless/http/test_libraries.py` fails if one of these internals changes:

* uvicorn's `H11Protocol`, its `handle_events`, `send_400_response`, `conn`, `cycle` and `flow`;
* uvicorn's `ServerState`, whose `tasks` are the running requests;
* asyncio's `_ssl_protocol._transport`, the transport below TLS. Only this transport knows how many
  encrypted bytes wait to be sent. A client that does not receive them must be disconnected.
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
from winnow.stateless.http.parsing import RationedConnection, bad_request_reply

KEY = "connection"
"""Key of the connection in the state of an ASGI scope."""


class RunningRequests:
    """The running requests of all connections of a server."""

    def __init__(self) -> None:
        self.state = ServerState()

    async def wait(self) -> None:
        """Waits until all requests have ended."""
        if tasks := tuple(self.state.tasks):
            await asyncio.wait(tasks)


class HttpConnection(H11Protocol):
    """A connection that reports to a `ConnectionLimiter`.

    The limiter is needed because uvicorn has no timeout for the headers of a request.
    """

    def __init__(
        self, limiter: ConnectionLimiter, config: Config, requests: RunningRequests, max_age: float
    ) -> None:
        """All connections of the server share `limiter` and `requests`. `max_age` is the age in
        seconds after which replies ask the client to reconnect.
        """
        super().__init__(config, requests.state, {KEY: self})
        self._old_at = self.loop.time() + max_age
        self._limiter, self._idle = limiter, False
        self._handshake: asyncio.Task[Any]
        self.conn = self._events = RationedConnection()
        self._continuation: asyncio.Handle | None = None
        """The scheduled call of `_handle_further_events`, if events are left."""

    def open(self, opened: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Opens the connection. It counts before the TLS handshake, which may never end."""
        made = self.loop.connect_accepted_socket(lambda: self, opened, ssl=tls)
        self._handshake = self.loop.create_task(made)
        self._handshake.add_done_callback(partial(self._on_opened, opened))
        self._limiter.add(self)

    def _on_opened(self, opened: socket.socket, handshake: asyncio.Task[Any]) -> None:
        if not handshake.cancelled():
            handshake.exception()  # retrieved, so that asyncio does not warn about it
        if self._is_opening():
            opened.close()
            self._limiter.remove(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Starts waiting for the first request."""
        # without NODELAY the body of a reply waits up to 40 ms until the client confirms the
        # headers; asyncio sets it only for sockets that it opens
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self._limiter.record_data(self)

    def data_received(self, data: bytes) -> None:
        """Receives data. The first bytes after a reply are the start of the next request."""
        if self._idle:
            self._idle = False
            self._limiter.record_data(self)
        super().data_received(data)

    def handle_events(self) -> None:
        """Handles a limited number of events, so that other connections are served in between."""
        self._events.allow_more()
        super().handle_events()
        if (
            self._events.interrupted
            and self._continuation is None
            and not self.transport.is_closing()
        ):
            self._continuation = self.loop.call_soon(self._handle_further_events)
            self.transport.pause_reading()

    def _handle_further_events(self) -> None:
        self._continuation = None
        if self.transport.is_closing():
            return
        self.handle_events()
        if self._continuation is None and not self.flow.read_paused:
            self.transport.resume_reading()

    def send_400_response(self, _msg: str) -> None:
        """Replies to bytes that are not HTTP, and closes the connection.

        Sends no reply after the start of another reply, because it would become a part of its body.
        """
        if self.cycle is not None:  # makes the running request see a disconnected caller
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            # not through h11, which allows no body if the previous request was a HEAD
            self.transport.write(bad_request_reply())
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Removes the connection from the limiter."""
        super().connection_lost(exc)
        self._limiter.remove(self)

    def start_request(self) -> None:
        """Records that the headers of a request have arrived."""
        self._limiter.start_request(self)

    def end_request(self) -> None:
        """Records that the reply was sent to the transport."""
        self._idle = True
        self._limiter.end_request(self)

    @property
    def is_old(self) -> bool:
        """Whether replies ask the client to open a new connection."""
        return self.loop.time() >= self._old_at

    @property
    def unsent(self) -> int:
        """Number of bytes that wait to be sent."""
        # over TLS, `get_write_buffer_size` counts only bytes that are not encrypted yet
        below = getattr(getattr(self.transport, "_ssl_protocol", None), "_transport", None)
        encrypted: int = below.get_write_buffer_size() if below is not None else 0
        return self.transport.get_write_buffer_size() + encrypted

    def close(self) -> None:
        """Closes the connection after all bytes have been sent."""
        if self._is_opening():
            self._handshake.cancel()
        else:
            self.transport.close()

    def abort(self) -> None:
        """Closes the connection immediately, and drops bytes that wait to be sent."""
        if self._is_opening():
            self._handshake.cancel()
        else:
            self.transport.abort()

    def _is_opening(self) -> bool:
        """Whether the connection is still being opened, for example in a TLS handshake."""
        return self.transport is None


def connection_of(scope: Any) -> HttpConnection:
    """Returns the connection of a request, by its ASGI scope."""
    connection = scope["state"][KEY]
    assert isinstance(connection, HttpConnection)
    return connection
