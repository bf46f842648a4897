"""Builds the cluster that is served, and updates it when nodes are added or removed.

Knows nodes and their infos; `membership` decides which of them form an index.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

import structlog

from winnow.deadline import Clock
from winnow.domain.shard import ShardInfo
from winnow.errors import NotLoadedError
from winnow.stateless.cluster.absence import absence_errors, reasons_of_absence
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.membership import ClusterView, FrontEncoding, form_view
from winnow.stateless.cluster.node import Infos, Node, ReplicaAt, lost_replicas
from winnow.stateless.metrics import ClusterMetrics
from winnow.stateless.replicas.joint import JointCalls
from winnow.stateless.replicas.replicated import ReplicaCondition, ReplicatedSearcher

_log = structlog.get_logger("stateless.cluster.builder")
OpenJoint = Callable[[Mapping[int, ReplicatedSearcher]], JointCalls | None]


class ClusterBuilder:
    """Builds a cluster from the present replicas, and keeps it up to date."""

    def __init__(
        self,
        encoding: FrontEncoding,
        open_shard: Callable[[int], ReplicatedSearcher],
        on_cluster: Callable[[Cluster], None],
        *,
        metrics: ClusterMetrics,
        open_joint: OpenJoint = lambda _: None,
        clock: Clock = time.monotonic,
    ) -> None:
        """`on_cluster` is called with the first cluster, and with each one of other shards.

        `open_joint` returns the calls for several shards of a cluster; None to call each alone.
        """
        self._clock, self._open_joint = clock, open_joint
        self._encoding, self._open_shard = encoding, open_shard
        self._on_cluster, self._metrics = on_cluster, metrics
        self._shards: dict[int, ReplicatedSearcher] = {}
        self.cluster: Cluster | None = None
        """The cluster that is served; None before the first one is formed."""
        self._formed = asyncio.Event()
        self._accepts_part = False
        self._logged_missing: list[int] | None = None
        self._not_loaded: set[tuple[str, str]] = set()
        """Addresses of nodes that could not load a shard, with the reasons."""
        self._last_updates: dict[int, object] = {}
        """Last update of each shard, to skip equal ones."""
        self._lost: set[ReplicaAt] = set()
        self._last: tuple[Infos, Collection[Node]] | None = None
        self.view = ClusterView()

    async def ready(self, timeout: float) -> None:
        """Waits until an index is served: all of it, or any part of it after `timeout` seconds.

        A front that starts while a shard is down must answer from the other shards.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._formed.wait()
        except TimeoutError:
            self.accept_part()
            await self._formed.wait()

    def accept_part(self) -> None:
        """Serves an index of which shards are missing, now and later."""
        self._accepts_part = True
        if self._last is not None:
            self.update(*self._last)

    def update(self, present: Infos, nodes: Collection[Node]) -> None:
        """Serves from the replicas in `present`; `nodes` are all nodes."""
        self._last = (present, nodes)
        before, self.view = self.view, form_view(present, self._encoding, self.view)
        self._log_changes(before, nodes)
        infos = self.view.expected()
        waits = self.cluster is None and not self._accepts_part and not self.view.is_whole
        if waits or infos is None:
            self._log_missing(nodes)
            return
        earlier = self.cluster if before.identity == self.view.identity else None
        if earlier is None or infos.keys() != self._shards.keys():
            self._open_shards(infos, keep=earlier is not None)
            self._update_shards(infos, present, nodes)
            joint = self._open_joint(self._shards)
            self.cluster = Cluster(self._shards, infos, self._clock, joint=joint, earlier=earlier)
            self._on_cluster(self.cluster)
            self._formed.set()
        else:
            self._update_shards(infos, present, nodes)
            earlier.shard_infos = infos

    def _open_shards(self, shards: Collection[int], *, keep: bool) -> None:
        """Opens the searchers of shards; `keep`: whether to keep those that are open already."""
        before = self._shards
        kept = {shard: before[shard] for shard in before.keys() & shards} if keep else {}
        # running questions keep the shards that they started with
        for shard, searcher in before.items():
            if shard not in kept:
                searcher.retire()
        self._shards = {shard: kept.get(shard) or self._open_shard(shard) for shard in shards}
        self._metrics.clear()
        self._last_updates = {}

    def conditions(self, shard: int) -> dict[str, ReplicaCondition]:
        """Condition of each replica of a shard, by address; empty while it is not served."""
        searcher = self._shards.get(shard)
        return searcher.conditions() if searcher is not None else {}

    def _update_shards(
        self, infos: dict[int, ShardInfo], present: Infos, nodes: Collection[Node]
    ) -> None:
        before, self._lost = self._lost, lost_replicas(nodes, present)
        lost: defaultdict[int, set[str]] = defaultdict(set)
        for replica in self._lost:
            lost[replica.shard].add(replica.address)
        newly_lost = {replica.shard for replica in self._lost - before}
        if newly_lost and self.cluster is not None and self.cluster.joint is not None:
            silent: defaultdict[str, set[int]] = defaultdict(set)
            for replica in self._lost - before:
                silent[replica.address].add(replica.shard)
            self.cluster.joint.give_up(silent, "it no longer replies")
        errors = absence_errors(self.view.missing(), nodes, self.view)
        for shard, info in infos.items():
            addresses, error = self.view.replicas[shard], errors.get(shard)
            sequences = {a: present[ReplicaAt(a, shard)].sequence for a in addresses}
            # while an index is fed, some shard reports a new write at almost every poll
            update = addresses, sequences, info.log_id, info.passages, str(error or "")
            if shard not in newly_lost and self._last_updates.get(shard) == update:
                continue
            self._last_updates[shard] = update
            own = lost.get(shard, ())
            self._shards[shard].update(addresses, error, own, sequences, info.log_id)
            self._metrics.set_shard(shard, info.passages, len(addresses))

    def _log_changes(self, before: ClusterView, nodes: Collection[Node]) -> None:
        """Logs each refused, changed or damaged replica once."""
        for replica, reason in self.view.refused.items():
            if before.refused.get(replica) != reason:
                _log.warning(
                    "replica refused", address=replica.address, shard=replica.shard, reason=reason
                )
        self._metrics.refused.set(len({replica.address for replica in self.view.refused}))
        for shard, addresses in self.view.replicas.items():
            if addresses != before.replicas.get(shard, ()):
                _log.info("replicas changed", shard=shard, addresses=list(addresses))
        not_loaded = {
            (node.address, str(error))
            for node in nodes
            for _, error in node.errors()
            if isinstance(error, NotLoadedError)
        }
        for address, reason in sorted(not_loaded - self._not_loaded):
            _log.warning("shard is not loaded", address=address, reason=reason)
        self._metrics.not_loaded.set(len({address for address, _ in not_loaded}))
        self._not_loaded = not_loaded

    def _log_missing(self, nodes: Collection[Node]) -> None:
        missing = self.view.missing()
        if missing != self._logged_missing:
            reason = "; ".join(reasons_of_absence(nodes, self.view)) or "no node was found"
            _log.info("waiting for shards", shards=missing, reason=reason)
            self._logged_missing = missing
