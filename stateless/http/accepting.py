"""Accepts connections. Knows no TLS and no HTTP."""

import asyncio
import socket
from collections.abc import Callable

import structlog

from winnow.address import Address

_log = structlog.get_logger("stateless.http")
_BACKLOG = 128
_AT_ONCE = 8
_PAUSE = 1.0
"""Seconds without new connections when no descriptor is left for them."""


class Acceptor:
    """Listens on a port."""

    def __init__(self, address: Address, came: Callable[[socket.socket], None]) -> None:
        """Calls `came` with each connection. Raises OSError if the address cannot be bound."""
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        both = address.host == "::" and socket.has_dualstack_ipv6()
        self._listening = socket.create_server(
            (address.host, address.port), family=family, backlog=_BACKLOG, dualstack_ipv6=both
        )
        self._listening.setblocking(False)
        self._came, self._loop = came, asyncio.get_running_loop()
        self._later: asyncio.TimerHandle | None = None
        self._open()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._listening.getsockname()[1])

    def close(self) -> None:
        """Accepts no more; may be called again."""
        if self._later is not None:
            self._later.cancel()
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
            self._listening.close()

    def _open(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        """Accepts a few: further ones wait until requests in hand had their turn."""
        for _ in range(_AT_ONCE):
            try:
                opened, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return  # there is none, or its caller has gone
            except OSError as error:
                _log.error("accepting connections paused", error=str(error))
                self._loop.remove_reader(self._listening)
                self._later = self._loop.call_later(_PAUSE, self._open)
                return
            self._came(opened)
