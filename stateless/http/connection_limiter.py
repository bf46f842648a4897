"""Limits open connections, and the time for which a client may keep the server waiting.

Once the limit is reached, each new connection closes the connection that has kept the server
waiting for longest. This module does not know HTTP.
"""

import asyncio
import contextlib
from typing import Protocol

from prometheus_client import CollectorRegistry

from winnow.telemetry.metrics import MetricFactory


class HttpMetrics:
    """Metrics of HTTP connections. HTTP calls are in `winnow_request_seconds`, as gRPC calls."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.connections = make.gauge("winnow_http_connections", "Open HTTP connections")
        self.ended = make.counter(
            "winnow_http_connections_ended",
            "HTTP connections that the server closed, by reason: slow (headers took too long), "
            "idle (no request for a while), crowded (too many connections), unread (the client did "
            "not read the reply)",
            "reason",
        )


HEADER_SECONDS = 10.0
"""Maximum seconds from the first byte of a request to the end of its headers.

It also limits a TLS handshake, and the time from the handshake to the end of the first headers.
"""
IDLE_SECONDS = 75.0
"""Maximum seconds between two requests. It is longer than the idle timeout of most proxies."""
REPLY_SECONDS = 30.0
"""Maximum seconds until a caller has received its reply, or the next part of a long reply."""


class OpenConnection(Protocol):
    """An open connection, as the limiter needs it."""

    @property
    def unsent(self) -> int:
        """Number of bytes that wait to be sent."""

    def close(self) -> None:
        """Closes the connection after all bytes have been sent."""

    def abort(self) -> None:
        """Closes the connection immediately, and drops bytes that wait to be sent."""


class ConnectionLimiter:
    """Tracks open connections, and closes those that keep the server waiting too long."""

    def __init__(
        self,
        max_connections: int,
        metrics: HttpMetrics,
        *,
        header_timeout: float = HEADER_SECONDS,
        idle_timeout: float = IDLE_SECONDS,
        reply_timeout: float = REPLY_SECONDS,
    ) -> None:
        """All timeouts are in seconds."""
        self._max_connections, self._metrics = max_connections, metrics
        self._header_timeout, self._idle_timeout = header_timeout, idle_timeout
        self._reply_timeout = reply_timeout
        self._waiting: dict[OpenConnection, asyncio.TimerHandle] = {}
        """The connections that keep the server waiting, longest first, with their timeouts."""
        self._busy: set[OpenConnection] = set()
        """Connections with a running request."""
        self._leaving = False
        self._all_closed = asyncio.Event()
        self._all_closed.set()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    def add(self, connection: OpenConnection) -> None:
        """Adds a new connection. At the limit, closes the longest waiting connection first."""
        if self._leaving:
            connection.abort()
            return
        if len(self) >= self._max_connections:
            oldest = next(iter(self._waiting), connection)
            self._abort(oldest, "crowded")
            if oldest is connection:
                return
        self._wait(connection, self._header_timeout, "slow")
        self._count()

    def start_request(self, connection: OpenConnection) -> None:
        """Records that the headers of a request have arrived."""
        if connection in self._waiting:
            self._forget(connection)
            self._busy.add(connection)

    def end_request(self, connection: OpenConnection) -> None:
        """Records that the reply was written to the buffer of the connection."""
        if connection in self._busy:
            unread = connection.unsent > 0
            seconds = self._reply_timeout if unread else self._idle_timeout
            self._wait(connection, seconds, "unread" if unread else "idle")
            if self._leaving:
                connection.close()

    def record_data(self, connection: OpenConnection) -> None:
        """Records the first bytes of a request on an idle connection."""
        if connection in self._waiting:
            self._wait(connection, self._header_timeout, "slow")

    def remove(self, connection: OpenConnection) -> None:
        """Removes a closed connection."""
        self._forget(connection)
        self._count()

    async def drain(self, grace: float) -> None:
        """Refuses new connections and closes idle ones. Waits up to `grace` seconds for running
        requests, then aborts the remaining connections.
        """
        self._leaving = True
        for connection in tuple(self._waiting):
            connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._all_closed.wait()
        for connection in (*self._waiting, *self._busy):
            connection.abort()

    def _wait(self, connection: OpenConnection, seconds: float, reason: str) -> None:
        self._forget(connection)
        loop = asyncio.get_running_loop()
        self._waiting[connection] = loop.call_later(seconds, self._abort, connection, reason)

    def _abort(self, connection: OpenConnection, reason: str) -> None:
        self._forget(connection)
        self._metrics.ended.labels(reason).inc()
        connection.abort()
        self._count()

    def _count(self) -> None:
        self._metrics.connections.set(len(self))
        if len(self):
            self._all_closed.clear()
        else:
            self._all_closed.set()

    def _forget(self, connection: OpenConnection) -> None:
        self._busy.discard(connection)
        if timer := self._waiting.pop(connection, None):
            timer.cancel()
