"""Heads on several head servers, each where rendezvous hashing puts it.

Servers come and go: a call in hand keeps the server that it was sent to. A server that fails is
ejected; meanwhile its heads are asked for at their second choice, which has to load them.
"""

import time
from collections.abc import Callable, Collection, Sequence

from winnow.deadline import Clock, Deadline
from winnow.domain.prediction import Applied
from winnow.heads.head_calls import HEAD_OUTLIERS, HeadCalls, HeadServer
from winnow.heads.heads import States
from winnow.replicas.policy.placement import Placement
from winnow.replicas.policy.replicas import ReplicaSettings
from winnow.replicas.server_pool import ServerPool


class PlacedHeads:
    """The heads of an encoder group on head servers, as `Heads`."""

    def __init__(
        self, open_server: Callable[[str], HeadServer], clock: Clock = time.monotonic
    ) -> None:
        """`open_server` makes what calls the server at an address. It is closed here."""
        settings = ReplicaSettings(outliers=HEAD_OUTLIERS)
        self._servers = ServerPool("head server", open_server, settings, clock)
        self._placement, self._clock = Placement(()), clock

    def update(self, addresses: Collection[str]) -> None:
        """From now on heads are asked for at these servers. Calls to others end by themselves."""
        if self._servers.pool.replicas.by_address.keys() != set(addresses):
            self._placement = Placement(addresses)
        self._servers.update(addresses)

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies each head at its server, or at its next one."""
        calls = HeadCalls(
            self._servers.pool,
            lambda: self._placement,
            lambda server, heads: server.call(states, heads, deadline, client),
            deadline=deadline,
            clock=self._clock,
        )
        try:
            return await calls.run(head_ids)
        finally:
            calls.end()

    async def close(self) -> None:
        """Gives up every call in hand, and closes all servers."""
        self.update(())
        await self._servers.close()
