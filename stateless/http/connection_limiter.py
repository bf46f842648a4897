"""The open connections: how many there are, and how long one may keep the server waiting.

Knows no HTTP. Who connects and says nothing takes a place, and there are only so many: whoever has
kept the server waiting for longest gives way.
"""

import asyncio
import contextlib
from typing import Protocol

from winnow.stateless.http.metrics import HttpMetrics

HEAD_SECONDS = 10.0
"""From the first byte of a request to the end of its headers; from connecting to the end of a TLS
handshake, and from there to the end of the first headers."""
IDLE_SECONDS = 75.0
"""Between two requests; longer than a proxy keeps a connection that it does not use."""

TAKING_SECONDS = 30.0
"""That a caller may take to take its reply, or a part of a long one."""


class OpenConnection(Protocol):
    """An open connection."""

    @property
    def unsent(self) -> int:
        """Bytes that wait for the other side to take them."""

    def close(self) -> None:
        """Closes it once everything was sent."""

    def abort(self) -> None:
        """Closes it at once, whatever has not been sent."""


class ConnectionLimiter:
    """Connections, and what each is waited for."""

    def __init__(
        self,
        most: int,
        metrics: HttpMetrics,
        head: float = HEAD_SECONDS,
        idle: float = IDLE_SECONDS,
        taking: float = TAKING_SECONDS,
    ) -> None:
        """`most`: connections at once; `head`, `idle` and `taking`: seconds."""
        self._most, self._metrics = most, metrics
        self._head, self._idle, self._taking = head, idle, taking
        self._waiting: dict[OpenConnection, asyncio.TimerHandle] = {}
        """Those that the server waits for, with the timers that end that; the oldest first."""
        self._busy: set[OpenConnection] = set()
        """Those with a request in hand."""
        self._leaving = False
        self._none = asyncio.Event()
        self._none.set()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    def came(self, connection: OpenConnection) -> None:
        """A connection was opened, for which another may have to go."""
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
        """A request has begun: its headers are here."""
        if connection in self._waiting:
            self._forget(connection)
            self._busy.add(connection)

    def ended(self, connection: OpenConnection) -> None:
        """Its reply was handed over."""
        if connection in self._busy:
            unread = connection.unsent > 0
            seconds = self._taking if unread else self._idle
            self._wait(connection, seconds, "unread" if unread else "idle")
            if self._leaving:
                connection.close()

    def spoke(self, connection: OpenConnection) -> None:
        """Something came from a connection that was idle: the beginning of a request."""
        if connection in self._waiting:
            self._wait(connection, self._head, "slow")

    def left(self, connection: OpenConnection) -> None:
        """It was closed."""
        self._forget(connection)
        self._count()

    async def leave(self, grace: float) -> None:
        """Takes no more connections, gives those with a request in hand up to `grace` seconds, and
        ends all that there are then.
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
