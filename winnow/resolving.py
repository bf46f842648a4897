"""Resolves targets to the addresses of servers.

gRPC could resolve names itself, but would hide the addresses from the policies that choose
replicas.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Protocol

from winnow.address import Address
from winnow.errors import UnavailableError

_DNS_SCHEME = "dns:///"
Lookup = Callable[[str, int], Awaitable[Iterable[str]]]
"""Returns the IP addresses of a host, given its name and a port; raises OSError on failure."""


class Resolver(Protocol):
    """Finds the current addresses of one target."""

    target: str

    async def addresses(self) -> frozenset[str]:
        """Returns the current addresses, as HOST:PORT; at least one.

        Raises UnavailableError if the target cannot be resolved.
        """


class StaticTarget:
    """The resolver of a single address, HOST:PORT."""

    def __init__(self, target: str) -> None:
        """Raises ValueError unless `target` is HOST:PORT."""
        _address(target, target)
        self.target = target

    async def addresses(self) -> frozenset[str]:
        """Returns the address itself."""
        return frozenset([self.target])


class DnsTarget:
    """The resolver of a DNS name of any number of servers, dns:///HOST:PORT."""

    def __init__(self, target: str, lookup: Lookup | None = None) -> None:
        """Raises ValueError unless `target` is dns:///HOST:PORT."""
        self.target = target
        self._address = _address(target.removeprefix(_DNS_SCHEME), target)
        self._lookup = lookup or _look_up_host

    async def addresses(self) -> frozenset[str]:
        """Returns all current addresses of the DNS name."""
        try:
            ips = frozenset(await self._lookup(self._address.host, self._address.port))
        except OSError as error:
            raise UnavailableError(f"cannot look up {self.target}: {error}") from error
        if not ips:
            raise UnavailableError(f"{self.target} has no address")
        return frozenset(str(replace(self._address, host=ip)) for ip in ips)


def resolver(target: str) -> Resolver:
    """Returns the resolver of HOST:PORT or dns:///HOST:PORT; raises ValueError for other text."""
    return DnsTarget(target) if target.startswith(_DNS_SCHEME) else StaticTarget(target)


async def _look_up_host(host: str, port: int) -> Iterable[str]:
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return {str(address[0]) for *_, address in entries}


def _address(text: str, target: str) -> Address:
    """Parses the address of a target; raises ValueError if it is invalid or has port 0."""
    try:
        address = Address.parse(text)
    except ValueError as error:
        raise ValueError(
            f"{target!r} is neither HOST:PORT nor {_DNS_SCHEME}HOST:PORT: {error}"
        ) from error
    if not address.port:
        raise ValueError(f"{target!r} has port 0: give the port that the server listens on")
    return address
