"""The cluster that is served, built again when nodes come or go.

Knows nodes and their infos; `membership` says which of them belong together.
"""

import asyncio
import time
from collections.abc import Callable, Collection

import structlog

from winnow.deadline import Clock
from winnow.domain.shard import ShardInfo
from winnow.errors import NotLoadedError
from winnow.stateless.cluster.absence import absences, reasons
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.membership import ClusterView, Encoding, form
from winnow.stateless.cluster.node import Node, lost
from winnow.stateless.metrics import ClusterMetrics
from winnow.stateless.replicas.replicated import ReplicaCondition, ReplicatedSearcher

_log = structlog.get_logger("stateless.cluster.builder")


class ClusterBuilder:
    """Builds a cluster of nodes, and keeps it up to date."""

    def __init__(
        self,
        encoding: Encoding,
        open_shard: Callable[[int], ReplicatedSearcher],
        serve: Callable[[Cluster], None],
        *,
        metrics: ClusterMetrics,
        clock: Clock = time.monotonic,
    ) -> None:
        """`serve` gets every new cluster: the first one, and each one of another index."""
        self._clock = clock
        self._encoding, self._open_shard = encoding, open_shard
        self._serve, self._metrics = serve, metrics
        self._shards: dict[int, ReplicatedSearcher] = {}
        self.cluster: Cluster | None = None
        """What is served; None while there is none."""
        self._formed = asyncio.Event()
        self._patient = True
        self._waits_for: list[int] | None = None
        self._not_loaded: set[str] = set()
        self._told: dict[int, object] = {}
        """What each shard was told last."""
        self._given_up: set[str] = set()
        self._last: tuple[dict[str, ShardInfo], Collection[Node]] | None = None
        self.view = ClusterView()

    async def ready(self, timeout: float) -> None:
        """Waits for a whole index, and after `timeout` seconds for any part of one.

        A front that is started beside a dead shard must not refuse to answer at all.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._formed.wait()
        except TimeoutError:
            self.take_what_is_there()
            await self._formed.wait()

    def take_what_is_there(self) -> None:
        """From now on serves a part of an index, too; at once if there is one already."""
        self._patient = False
        if self._last is not None:
            self.update(*self._last)

    def update(self, present: dict[str, ShardInfo], nodes: Collection[Node]) -> None:
        """From now on these nodes are `present`, out of all `nodes`."""
        self._last = (present, nodes)
        before, self.view = self.view, form(present, self._encoding, self.view)
        self._tell(before, nodes)
        infos = self.view.expected()
        waits = self.cluster is None and self._patient and not self.view.whole
        if waits or infos is None:
            self._explain(nodes)
            return
        if before.identity != self.view.identity or self.cluster is None:
            # questions in hand keep the shards that they began with
            for shard in self._shards.values():
                shard.retire()
            self._shards = {shard: self._open_shard(shard) for shard in infos}
            self._metrics.clear()
            self._told = {}
            self._update(infos, present, nodes)
            self.cluster = Cluster(self._shards, infos, self._clock)
            self._serve(self.cluster)
            self._formed.set()
        else:
            self._update(infos, present, nodes)
            self.cluster.infos = infos

    def conditions(self, shard: int) -> dict[str, ReplicaCondition]:
        """How each replica of a shard does, by address; none while the shard is not served."""
        served = self._shards.get(shard)
        return served.conditions() if served is not None else {}

    def _update(
        self, infos: dict[int, ShardInfo], present: dict[str, ShardInfo], nodes: Collection[Node]
    ) -> None:
        given_up = lost(nodes, present)
        before, self._given_up = self._given_up, given_up
        why = absences(self.view.missing(), nodes, self.view)
        for shard, info in infos.items():
            addresses = self.view.replicas[shard]
            sequences = {a: present[a].sequence for a in addresses}
            # while an index is fed, a node of one shard or another says something new all the time
            told = addresses, sequences, info.log_id, info.passages, str(why.get(shard, ""))
            if given_up <= before and self._told.get(shard) == told:
                continue
            self._told[shard] = told
            shown = why.get(shard), given_up, sequences, info.log_id
            self._shards[shard].update(addresses, *shown)
            self._metrics.shard(shard, info.passages, len(addresses))

    def _tell(self, before: ClusterView, nodes: Collection[Node]) -> None:
        """Logs each change once."""
        for address, reason in self.view.refused.items():
            if before.refused.get(address) != reason:
                _log.warning("node refused", address=address, reason=reason)
        self._metrics.refused.set(len(self.view.refused))
        for shard, addresses in self.view.replicas.items():
            if addresses != before.replicas.get(shard, ()):
                _log.info("replicas changed", shard=shard, addresses=list(addresses))
        not_loaded = {node.address for node in nodes if isinstance(node.error, NotLoadedError)}
        new = not_loaded - self._not_loaded
        for node in nodes:
            if node.address in new:
                _log.warning("node is not loaded", address=node.address, reason=str(node.error))
        self._metrics.not_loaded.set(len(not_loaded))
        self._not_loaded = not_loaded

    def _explain(self, nodes: Collection[Node]) -> None:
        missing = self.view.missing()
        if missing != self._waits_for:
            said = "; ".join(reasons(nodes, self.view)) or "none was found"
            _log.warning("waiting for shards", shards=missing, reason=said)
            self._waits_for = missing
