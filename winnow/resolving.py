"""Where servers are: targets, and the addresses behind them.

Knows names and ports; does not know whether anything serves there. gRPC could resolve names itself,
but would then choose among the addresses itself, and hide them from the policies.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from winnow.errors import UnavailableError

_DNS = "dns:///"
Lookup = Callable[[str, int], Awaitable[Iterable[str]]]
"""The IP addresses of a host; the port is only passed on. Raises OSError."""


class Resolver(Protocol):
    """Finds the addresses behind a target."""

    target: str

    async def addresses(self) -> frozenset[str]:
        """Its present addresses, as HOST:PORT, at least one.

        Raises:
            UnavailableError: it cannot be looked up.

        """


class Static:
    """A target that is an address."""

    def __init__(self, target: str) -> None:
        """Raises ValueError unless `target` is HOST:PORT."""
        _split(target, target)
        self.target = target

    async def addresses(self) -> frozenset[str]:
        """The address itself."""
        return frozenset([self.target])


class Dns:
    """A DNS name of any number of servers."""

    def __init__(self, target: str, lookup: Lookup | None = None) -> None:
        """Raises ValueError unless `target` is dns:///HOST:PORT."""
        self.target = target
        self._host, self._port = _split(target.removeprefix(_DNS), target)
        self._lookup = lookup or _look_up

    async def addresses(self) -> frozenset[str]:
        """All present addresses of the name."""
        try:
            found = frozenset(await self._lookup(self._host, self._port))
        except OSError as error:
            raise UnavailableError(f"cannot look up {self.target}: {error}") from error
        if not found:
            raise UnavailableError(f"{self.target} has no address")
        return frozenset(
            f"[{ip}]:{self._port}" if ":" in ip else f"{ip}:{self._port}" for ip in found
        )


def resolver(target: str) -> Resolver:
    """The resolver of HOST:PORT or dns:///HOST:PORT; raises ValueError if it is neither."""
    return Dns(target) if target.startswith(_DNS) else Static(target)


async def _look_up(host: str, port: int) -> Iterable[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return {str(address[0]) for *_, address in found}


def _split(place: str, target: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{target!r} is neither HOST:PORT nor {_DNS}HOST:PORT")
    return host, int(port)
