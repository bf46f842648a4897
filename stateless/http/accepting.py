"""Accepts TCP connections. It does not know TLS or HTTP."""

import asyncio
import socket
from collections.abc import Callable

import structlog

from winnow.address import Address

_log = structlog.get_logger("stateless.http")
_BACKLOG = 128
_MAX_ACCEPTS = 8
"""Maximum number of connections that are accepted before the event loop runs other tasks."""
_PAUSE = 1.0
"""Seconds until the next attempt after the process ran out of file descriptors."""


class Acceptor:
    """Listens on a port, and accepts connections."""

    def __init__(self, address: Address, on_connection: Callable[[socket.socket], None]) -> None:
        """Starts listening; calls `on_connection` with each connection.

        Raises OSError if the address cannot be bound.
        """
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        dual_stack = address.host == "::" and socket.has_dualstack_ipv6()
        self._listener = socket.create_server(
            (address.host, address.port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual_stack
        )
        self._listener.setblocking(False)
        self._on_connection, self._loop = on_connection, asyncio.get_running_loop()
        self._resume_timer: asyncio.TimerHandle | None = None
        self._resume()

    @property
    def port(self) -> int:
        """The bound port."""
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        """Closes the listener. Further calls do nothing."""
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener)
            self._listener.close()

    def _resume(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        """Accepts some of the waiting connections."""
        for _ in range(_MAX_ACCEPTS):
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return  # no connection waits, or the client closed it
            except OSError as error:
                _log.error("accepting connections paused", error=str(error))
                self._loop.remove_reader(self._listener)
                self._resume_timer = self._loop.call_later(_PAUSE, self._resume)
                return
            self._on_connection(accepted)
