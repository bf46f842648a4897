"""The nodes of an index of the catalog, as a run of copying sees them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from winnow.content_node.transfer.remote import PeerNodes, PeerShard
from winnow.deadline import Deadline, Sleep
from winnow.domain.catalog import CatalogIndex
from winnow.domain.shard import NodeReport, ShardInfo
from winnow.errors import DeadlineExceededError, NotWritableError, UnavailableError
from winnow.security.peers import PLAIN_TEXT, PeerChannels

_POLL_SECONDS = 0.2
"""Seconds between two polls of nodes that have not read the catalog yet."""


@dataclass(frozen=True, slots=True)
class OwnedShard:
    """A shard of the index, and the nodes that take its writes: all replicas of a journal."""

    replicas: tuple[tuple[str, ShardInfo], ...]
    """The name of each node, and its description of the shard; the one with most writes first."""

    @property
    def node(self) -> str:
        """Name of the node that has the most writes."""
        return self.replicas[0][0]

    @property
    def info(self) -> ShardInfo:
        """Description by the node that has the most writes."""
        return self.replicas[0][1]


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
            NotWritableError: a shard has replicas without a journal, or the catalog names no nodes
                of the shards.

        """
        held = self.index.holders
        if not held:
            raise NotWritableError(f"the catalog does not name the nodes of {self.name}")
        reports = await self._reports({node for nodes in held.values() for node in nodes})
        return {shard: self._owned_shard(shard, nodes, reports) for shard, nodes in held.items()}

    async def has_tenants(self, say: Callable[[str], None]) -> bool:
        """Whether the index has tenants. Waits until all its nodes reply, and tells each new
        reason.

        Raises NotWritableError as `shards`.
        """
        reason = ""
        while True:
            try:
                return any(each.info.tenants for each in (await self.shards()).values())
            except (UnavailableError, DeadlineExceededError) as error:
                if str(error) != reason:
                    reason = str(error)
                    say(f"{reason}; trying again")
            await self._sleep(_POLL_SECONDS)

    async def wait_until_closed(self, since: int, deadline: Deadline) -> dict[int, OwnedShard]:
        """Waits until no shard takes writes of fronts since this version of the catalog.

        Returns the shards, whose sequence numbers count all writes before. Raises UnavailableError
        after the deadline, and as `shards`.
        """
        while True:
            shards = await self.shards()
            problem = _open_replica(shards, since) or await self._moving_replica(shards)
            if not problem:
                return shards
            if deadline.expired():
                raise UnavailableError(
                    f"{problem}: can it read the catalog, and is it of this version?"
                )
            await self._sleep(_POLL_SECONDS)

    async def check_settled(self) -> None:
        """Raises UnavailableError if a node still serves a replica that moves away.

        Call it before the shards are closed. Such a node may still publish a write that the other
        replicas apply after they have reported that they are closed.
        """
        if problem := await self._moving_replica(await self.shards()):
            raise UnavailableError(problem)

    @asynccontextmanager
    async def open_shard(self, node: str, shard: int) -> AsyncIterator[PeerShard]:
        """Opens a connection to a shard on a node."""
        async with self._peers.open_shard(node, self.index.index_id, shard) as peer:
            yield peer

    async def _reports(self, names: Collection[str]) -> dict[str, NodeReport]:
        """Returns the reports of nodes by name; raises UnavailableError if one does not reply."""
        own = sorted(names)
        return dict(zip(own, await asyncio.gather(*map(self._peers.report, own)), strict=True))

    async def _moving_replica(self, shards: Mapping[int, OwnedShard]) -> str:
        """Returns which node still serves a replica that moves away; empty if none does.

        Without a journal such a node takes no writes. Raises UnavailableError if a node that may
        have a replica does not reply.
        """
        if not any(each.info.journaled for each in shards.values()):
            return ""
        assigned = {name for each in shards.values() for name, _ in each.replicas}
        others = set(self.index.nodes or self._addresses) - assigned
        for shard, nodes in self._holders_in(await self._reports(others | assigned)).items():
            holders = [name for name, _ in shards[shard].replicas] if shard in shards else []
            if left := sorted(set(nodes) - set(holders)):
                return f"node {left[0]} has not closed shard {shard} of {self.name}, which moved"
        return ""

    def _holders_in(self, reports: Mapping[str, NodeReport]) -> dict[int, list[str]]:
        """Returns the names of the nodes that serve each shard of the index."""
        found: dict[int, list[str]] = {}
        for name, report in reports.items():
            for info in report.infos:
                if info.index_id == self.index.index_id:
                    found.setdefault(info.shard, []).append(name)
        return found

    def _owned_shard(
        self, shard: int, nodes: tuple[str, ...], reports: Mapping[str, NodeReport]
    ) -> OwnedShard:
        replicas = [(node, self._info(shard, node, reports[node])) for node in nodes]
        if len(nodes) > 1 and not all(info.journaled for _, info in replicas):
            raise NotWritableError(
                f"shard {shard} of {self.name} has replicas without a journal, so it takes no "
                "writes, and cannot be copied"
            )
        replicas.sort(key=lambda each: (-each[1].sequence, each[0]))
        return OwnedShard(tuple(replicas))

    def _info(self, shard: int, node: str, report: NodeReport) -> ShardInfo:
        """Returns a node's description of a shard; raises UnavailableError if it has none."""
        for info in report.infos:
            is_own = (info.index_id, info.shard) == (self.index.index_id, shard)
            if is_own and not info.writes_elsewhere:
                return info
        raise UnavailableError(
            f"node {node} does not serve shard {shard} of {self.name} yet (if this persists, see "
            "its log)"
        )


def _open_replica(shards: Mapping[int, OwnedShard], since: int) -> str:
    """Returns which node still takes writes of fronts, or has not caught up; empty if none."""
    for shard, held in shards.items():
        for node, info in held.replicas:
            if (info.replica_closed_since if info.journaled else info.closed_since) != since:
                return f"node {node} has not closed shard {shard} to writes"
    return ""
