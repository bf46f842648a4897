"""Limits open connections: how many there are, and how long one may keep the server waiting.

Knows no HTTP. A client that connects and sends nothing takes a place, and places are limited. If
none is left, the connection that has kept the server waiting for longest is closed.
"""

import asyncio
import contextlib
from typing import Protocol

from prometheus_client import CollectorRegistry

from winnow.telemetry.metrics import MetricFactory


class HttpMetrics:
    """Metrics of connections. Those of calls are `winnow_request_seconds`, as for gRPC."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.connections = make.gauge("winnow_http_connections", "HTTP connections that are open")
        self.ended = make.counter(
            "winnow_http_connections_ended",
            "HTTP connections that the server ended: slow (headers took too long), idle (no "
            "request for a while), crowded (too many others), unread (nobody took the reply)",
            "reason",
        )


HEAD_SECONDS = 10.0
"""Longest time from the first byte of a request to the end of its headers. It also bounds the time
from connecting to the end of a TLS handshake, and from there to the end of the first headers."""
IDLE_SECONDS = 75.0
"""Longest time between two requests; a proxy keeps unused connections for less."""

TAKING_SECONDS = 30.0
"""Longest time until a caller has received its reply, or a part of a long one."""


class OpenConnection(Protocol):
    """An open connection."""

    @property
    def unsent(self) -> int:
        """Bytes that wait for the other side to take them."""

    def close(self) -> None:
        """Closes it once everything was sent."""

    def abort(self) -> None:
        """Closes it at once, even if bytes wait to be sent."""


class ConnectionLimiter:
    """Open connections, each with a timer that ends it while the server waits for it."""

    def __init__(
        self,
        most: int,
        metrics: HttpMetrics,
        *,
        head: float = HEAD_SECONDS,
        idle: float = IDLE_SECONDS,
        taking: float = TAKING_SECONDS,
    ) -> None:
        """`most`: most connections at once; `head`, `idle` and `taking`: seconds."""
        self._most, self._metrics = most, metrics
        self._head, self._idle, self._taking = head, idle, taking
        self._waiting: dict[OpenConnection, asyncio.TimerHandle] = {}
        """Connections that the server waits for, longest first, with the timers that end them."""
        self._busy: set[OpenConnection] = set()
        """Connections with a request in hand."""
        self._leaving = False
        self._none = asyncio.Event()
        self._none.set()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    def came(self, connection: OpenConnection) -> None:
        """Counts a connection that was opened; another may be closed for it."""
        if self._leaving:
            connection.abort()
            return
        if len(self) >= self._most:
            oldest = next(iter(self._waiting), connection)
            self._end(oldest, "crowded")
            if oldest is connection:
                return
        self._wait(connection, self._head, "slow")
        self._count()

    def began(self, connection: OpenConnection) -> None:
        """Notes that a request has begun: its headers are here."""
        if connection in self._waiting:
            self._forget(connection)
            self._busy.add(connection)

    def ended(self, connection: OpenConnection) -> None:
        """Notes that the reply was handed over."""
        if connection in self._busy:
            unread = connection.unsent > 0
            seconds = self._taking if unread else self._idle
            self._wait(connection, seconds, "unread" if unread else "idle")
            if self._leaving:
                connection.close()

    def spoke(self, connection: OpenConnection) -> None:
        """Notes that an idle connection sent the beginning of a request."""
        if connection in self._waiting:
            self._wait(connection, self._head, "slow")

    def left(self, connection: OpenConnection) -> None:
        """Forgets a connection that was closed."""
        self._forget(connection)
        self._count()

    async def leave(self, grace: float) -> None:
        """Takes no more connections, waits up to `grace` seconds for requests in hand, and ends all
        connections that are left.
        """
        self._leaving = True
        for connection in tuple(self._waiting):
            connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._none.wait()
        for connection in (*self._waiting, *self._busy):
            connection.abort()

    def _wait(self, connection: OpenConnection, seconds: float, why: str) -> None:
        self._forget(connection)
        loop = asyncio.get_running_loop()
        self._waiting[connection] = loop.call_later(seconds, self._end, connection, why)

    def _end(self, connection: OpenConnection, why: str) -> None:
        self._forget(connection)
        self._metrics.ended.labels(why).inc()
        connection.abort()
        self._count()

    def _count(self) -> None:
        self._metrics.connections.set(len(self))
        if len(self):
            self._none.clear()
        else:
            self._none.set()

    def _forget(self, connection: OpenConnection) -> None:
        self._busy.discard(connection)
        if timer := self._waiting.pop(connection, None):
            timer.cancel()
