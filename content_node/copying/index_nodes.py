"""The nodes of an index of the catalog, as a run of copying sees them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from winnow.content_node.transfer.remote import PeerNodes, PeerShard
from winnow.deadline import Deadline, Sleep
from winnow.domain.catalog import CatalogIndex
from winnow.domain.shard import NodeReport, ShardInfo
from winnow.errors import NotWritableError, UnavailableError
from winnow.security.peers import PLAIN_TEXT, PeerChannels

_POLL_SECONDS = 0.2
"""Seconds between two polls of nodes that have not read the catalog yet."""


@dataclass(frozen=True, slots=True)
class OwnedShard:
    """A shard of the index, and the node that takes its writes."""

    node: str
    info: ShardInfo


class IndexNodes:
    """Calls the nodes of one index."""

    def __init__(
        self,
        name: str,
        index: CatalogIndex,
        addresses: Mapping[str, str],
        *,
        copy: str,
        peers: PeerChannels = PLAIN_TEXT,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Calls nothing yet. `addresses` are those of the nodes by name.

        The nodes open files and keep the log for `copy`, the copy that is written.
        """
        self.name, self.index = name, index
        self._addresses, self._sleep = addresses, sleep
        self._peers = PeerNodes(
            f"winnow indexes {copy}",
            lambda node: addresses.get(node, ""),
            peers,
            index_id=index.index_id,
        )

    async def shards(self) -> dict[int, OwnedShard]:
        """Returns all shards by number.

        Raises:
            UnavailableError: a node does not reply, or does not serve a shard that is assigned to
                it, or does not take its writes yet.
            NotWritableError: a shard has replicas or follows a journal, or the catalog names no
                nodes of the shards.

        """
        held = self.index.holders
        if not held:
            raise NotWritableError(f"the catalog does not name the nodes of {self.name}")
        names = sorted({node for nodes in held.values() for node in nodes})
        reports = dict(
            zip(names, await asyncio.gather(*map(self._peers.report, names)), strict=True)
        )
        return {shard: self._owned_shard(shard, nodes, reports) for shard, nodes in held.items()}

    async def wait_until_closed(self, since: int, deadline: Deadline) -> dict[int, OwnedShard]:
        """Waits until no shard takes writes of fronts since this version of the catalog.

        Returns the shards, whose sequence numbers count all writes before. Raises UnavailableError
        after the deadline, and as `shards`.
        """
        while True:
            shards = await self.shards()
            late = next((each for each in shards.values() if each.info.closed_since != since), None)
            if late is None:
                return shards
            if deadline.expired():
                raise UnavailableError(
                    f"node {late.node} has not closed shard {late.info.shard} of {self.name} to "
                    "writes: can it read the catalog, and is it of this version?"
                )
            await self._sleep(_POLL_SECONDS)

    @asynccontextmanager
    async def open_shard(self, node: str, shard: int) -> AsyncIterator[PeerShard]:
        """Opens a connection to a shard on a node."""
        async with self._peers.open_shard(node, self.index.index_id, shard) as peer:
            yield peer

    def _owned_shard(
        self, shard: int, nodes: tuple[str, ...], reports: Mapping[str, NodeReport]
    ) -> OwnedShard:
        if len(nodes) > 1:
            raise NotWritableError(
                f"shard {shard} of {self.name} has replicas, which cannot be copied yet"
            )
        (node,) = nodes
        found = [
            info
            for info in reports[node].infos
            if (info.index_id, info.shard) == (self.index.index_id, shard)
        ]
        if not found or found[0].writes_elsewhere:
            raise UnavailableError(f"node {node} does not serve shard {shard} of {self.name} yet")
        if found[0].journaled:
            raise NotWritableError(
                f"shard {shard} of {self.name} follows a journal, and cannot be copied yet"
            )
        return OwnedShard(node, found[0])
