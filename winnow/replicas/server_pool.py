"""A pool of servers whose addresses change. The pool opens and closes the connections."""

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from typing import Generic, Protocol, TypeVar

import structlog

from winnow.deadline import Clock
from winnow.errors import UnavailableError
from winnow.replicas.observer import PoolObserver
from winnow.replicas.policy.replicas import ReplicaSettings
from winnow.replicas.pool import ReplicaPool
from winnow.resolving import Resolver

_log = structlog.get_logger("winnow.replicas")
_LOOKUP_INTERVAL = 5.0
"""Seconds between two DNS lookups of a target."""


class Closable(Protocol):
    """A client with a connection to one server."""

    async def close(self) -> None:
        """Closes the connection."""


Server = TypeVar("Server", bound=Closable)


class ServerPool(PoolObserver, Generic[Server]):
    """A replica pool that opens and closes its clients, and logs ejected servers."""

    def __init__(
        self,
        server_kind: str,
        open_server: Callable[[str], Server],
        settings: ReplicaSettings,
        clock: Clock,
    ) -> None:
        """`server_kind` is a noun for log events; `open_server` returns a client for an address."""
        self._server_kind, self._open = server_kind, open_server
        self.servers: dict[str, Server] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.pool: ReplicaPool[Server] = ReplicaPool(
            self.servers.__getitem__,
            settings,
            clock=clock,
            rng=random.Random(),
            observer=self,
        )

    def update(self, addresses: Collection[str]) -> None:
        """Replaces the servers that get new requests. Requests to removed servers continue."""
        for address in addresses:
            if address not in self.servers:
                self.servers[address] = self._open(address)
        self.pool.update(addresses)

    def give_up(self) -> None:
        """Gives up every running request, and accepts no new requests."""
        self.update(())
        self.pool.give_up_all()

    async def close(self) -> None:
        """Gives up every running request, and closes all connections."""
        self.update(())
        await self.pool.close()
        for address in list(self.servers):
            self.on_drained(address)
        await asyncio.gather(*self._closing)

    def on_drained(self, address: str) -> None:
        """Closes the connection to a removed server."""
        if address in self.servers:
            closing = asyncio.get_running_loop().create_task(self.servers.pop(address).close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def on_ejected(self, address: str, first: bool, error: BaseException | None) -> None:
        """Logs a first ejection, but not every failed probe."""
        if first:
            reason = {"error": str(error)} if error else {}
            _log.warning(f"{self._server_kind} ejected", server=address, **reason)

    def on_readmitted(self, address: str) -> None:
        """Logs that the server gets requests again."""
        _log.info(f"{self._server_kind} readmitted", server=address)


async def follow_targets(
    server_kind: str,
    resolvers: Sequence[Resolver],
    update: Callable[[Collection[str]], None],
    interval: float = _LOOKUP_INTERVAL,
) -> None:
    """Resolves all targets periodically and passes their addresses to `update`; never returns.

    If a lookup fails, the target keeps its last addresses.

    Args:
        server_kind: a noun for log events, such as "head server".
        resolvers: one for each target.
        update: called with the addresses of all targets after every round of lookups.
        interval: seconds between two rounds.

    """
    addresses: dict[str, frozenset[str]] = {}
    while True:
        for resolver in resolvers:
            try:
                addresses[resolver.target] = await resolver.addresses()
            except UnavailableError as error:
                _log.warning(
                    f"{server_kind} lookup failed", target=resolver.target, error=str(error)
                )
        update(frozenset().union(*addresses.values()))
        await asyncio.sleep(interval)
