"""Applies heads on several head servers. Rendezvous hashing chooses the server of each head.

A call in flight keeps its server when the set of servers changes. A failing server is ejected for a
while. Its heads go to the next server in their order, which has to load them.
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
    """The heads of an encoder group on head servers; implements `Heads`."""

    def __init__(
        self, open_server: Callable[[str], HeadServer], clock: Clock = time.monotonic
    ) -> None:
        """`open_server` returns a client of the server at an address; `close` closes it."""
        settings = ReplicaSettings(outliers=HEAD_OUTLIERS)
        self._servers = ServerPool("head server", open_server, settings, clock)
        self._placement, self._clock = Placement(()), clock

    def update(self, addresses: Collection[str]) -> None:
        """Sets the addresses of the head servers. Calls to removed servers still finish."""
        if self._servers.pool.replicas.by_address.keys() != set(addresses):
            self._placement = Placement(addresses)
        self._servers.update(addresses)

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies each head on its server, or on the next server if the first one fails."""
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
            calls.cancel()

    async def close(self) -> None:
        """Cancels all calls in flight, and closes all clients."""
        self.update(())
        await self._servers.close()
