"""Builds the served cluster, and updates it when nodes are added or removed.

This module knows nodes and their infos. `membership` decides which of the nodes form an index.
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
from winnow.stateless.cluster.node import Node, ReplicaAt, ReplicaInfos, lost_replicas
from winnow.stateless.metrics import ClusterMetrics
from winnow.stateless.replicas.joint import JointCalls
from winnow.stateless.replicas.replicated import ReplicaCondition, ReplicatedSearcher

_log = structlog.get_logger("stateless.cluster.builder")
OpenJoint = Callable[[Mapping[int, ReplicatedSearcher]], JointCalls | None]
"""Returns what sends the joint calls of a cluster, or None to call each shard alone."""


class ClusterBuilder:
    """Builds a cluster from the present replicas, and keeps this cluster up to date."""

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
        """`open_shard` opens the searcher of a shard. `on_cluster` is called with the first
        cluster, and with every cluster that has other shards than the previous one.
        """
        self._clock, self._open_joint = clock, open_joint
        self._encoding, self._open_shard = encoding, open_shard
        self._on_cluster, self._metrics = on_cluster, metrics
        self._shards: dict[int, ReplicatedSearcher] = {}
        self.cluster: Cluster | None = None
        """The served cluster; None before the first one is built."""
        self._formed = asyncio.Event()
        """Is set when the first cluster has been built."""
        self._accepts_partial = False
        """Whether an index may be served although shards are missing."""
        self._logged_missing: list[int] | None = None
        self._not_loaded: set[tuple[str, str]] = set()
        """Addresses of nodes that could not load a shard, with the reasons."""
        self._last_updates: dict[int, object] = {}
        """The last update of each shard, to skip an equal update."""
        self._lost: set[ReplicaAt] = set()
        self._last: tuple[ReplicaInfos, Collection[Node]] | None = None
        self.view = ClusterView()

    async def wait_until_serving(self, timeout: float) -> None:
        """Waits until an index is served. After `timeout` seconds a partial index is enough.

        So a front that starts while a shard is down answers from the other shards.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._formed.wait()
        except TimeoutError:
            self.accept_partial_index()
            await self._formed.wait()

    def accept_partial_index(self) -> None:
        """Allows serving an index with missing shards, permanently."""
        self._accepts_partial = True
        if self._last is not None:
            self.update(*self._last)

    def update(self, present: ReplicaInfos, nodes: Collection[Node]) -> None:
        """Updates the cluster to the replicas in `present`. `nodes` are all known nodes."""
        self._last = (present, nodes)
        before, self.view = self.view, form_view(present, self._encoding, self.view)
        self._log_changes(before, nodes)
        infos = self.view.expected()
        waits = self.cluster is None and not self._accepts_partial and not self.view.is_whole
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
        """Opens the searchers of `shards`. `keep`: whether to keep searchers that are open."""
        before = self._shards
        kept = {shard: before[shard] for shard in before.keys() & shards} if keep else {}
        # running questions may still call retired searchers
        for shard, searcher in before.items():
            if shard not in kept:
                searcher.retire()
        self._shards = {shard: kept.get(shard) or self._open_shard(shard) for shard in shards}
        self._metrics.clear()
        self._last_updates = {}

    def conditions(self, shard: int) -> dict[str, ReplicaCondition]:
        """The condition of each replica of a shard, by address; empty for an unserved shard."""
        searcher = self._shards.get(shard)
        return searcher.conditions() if searcher is not None else {}

    def _update_shards(
        self, infos: dict[int, ShardInfo], present: ReplicaInfos, nodes: Collection[Node]
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
            # skip unchanged shards: during feeding, nearly every poll reports a write to some shard
            update = addresses, sequences, info.log_id, info.passages, str(error or "")
            if shard not in newly_lost and self._last_updates.get(shard) == update:
                continue
            self._last_updates[shard] = update
            own = lost.get(shard, ())
            self._shards[shard].update(addresses, error, own, sequences, info.log_id)
            self._metrics.set_shard(shard, info.passages, len(addresses))

    def _log_changes(self, before: ClusterView, nodes: Collection[Node]) -> None:
        """Logs changes of refusals, of replicas and of shards that could not be loaded."""
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
