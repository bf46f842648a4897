"""Servers at addresses that come and go, called through a pool that opens and closes them."""

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
_EVERY = 5.0
"""Seconds between two look-ups of a target."""


class Closable(Protocol):
    """Calls a server over a connection."""

    async def close(self) -> None:
        """Closes the connection."""


Server = TypeVar("Server", bound=Closable)


class ServerPool(PoolObserver, Generic[Server]):
    """A replica pool that opens and closes its backends, and logs which servers are ejected."""

    def __init__(
        self,
        kind: str,
        open_server: Callable[[str], Server],
        settings: ReplicaSettings,
        clock: Clock,
    ) -> None:
        """`kind`: of the servers, for log events; `open_server` makes what calls an address."""
        self._kind, self._open = kind, open_server
        self.servers: dict[str, Server] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.pool: ReplicaPool[Server] = ReplicaPool(
            self.servers.__getitem__,
            settings,
            clock=clock,
            chance=random.Random(),
            observer=self,
        )

    def update(self, addresses: Collection[str]) -> None:
        """From now on new requests go to these servers. Requests to others end by themselves."""
        for address in addresses:
            if address not in self.servers:
                self.servers[address] = self._open(address)
        self.pool.update(addresses)

    def give_up(self) -> None:
        """Gives up every request in hand, and takes no new ones."""
        self.update(())
        self.pool.give_up_all()

    async def close(self) -> None:
        """Gives up every request in hand, and closes all servers."""
        self.update(())
        await self.pool.close()
        for address in list(self.servers):
            self.left(address)
        await asyncio.gather(*self._closing)

    def left(self, address: str) -> None:
        """Closes the server."""
        if address in self.servers:
            closing = asyncio.get_running_loop().create_task(self.servers.pop(address).close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def ejected(self, address: str, first: bool, error: BaseException | None) -> None:
        """Logs a first ejection; failed probes are not worth a line each."""
        if first:
            reason = {"error": str(error)} if error else {}
            _log.warning(f"{self._kind} ejected", server=address, **reason)

    def readmitted(self, address: str) -> None:
        """Logs that the server gets requests again."""
        _log.info(f"{self._kind} readmitted", server=address)


async def follow(
    kind: str,
    resolvers: Sequence[Resolver],
    update: Callable[[Collection[str]], None],
    every: float = _EVERY,
) -> None:
    """Looks all targets up now and every so often, for ever, and hands on their addresses.

    Where a name cannot be looked up, its last addresses stay.

    Args:
        kind: of the servers, for log events.
        resolvers: of the targets.
        update: gets all addresses after every round of look-ups.
        every: seconds between two rounds.

    """
    found: dict[str, frozenset[str]] = {}
    while True:
        for resolver in resolvers:
            try:
                found[resolver.target] = await resolver.addresses()
            except UnavailableError as error:
                _log.warning(f"{kind} lookup failed", target=resolver.target, error=str(error))
        update(frozenset().union(*found.values()))
        await asyncio.sleep(every)
