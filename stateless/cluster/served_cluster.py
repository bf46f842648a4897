"""Serves the shards of a front's cluster to other fronts, like a content node.

So a front can use other fronts as nodes, and calls few of them, however many shards there are.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from winnow.candidates.joint import join
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import NodeReport, ShardFault, ShardInfo
from winnow.errors import IdentityError, LeavingError, UnavailableError, WinnowError
from winnow.searcher import RequestedShard, Retrieved, Searcher
from winnow.shard_writer import CountingShardWriter, WritableShard
from winnow.stateless.cluster.absence import absence_errors
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.node import ReplicaAt
from winnow.stateless.policy.reading import shard_pace

_MAX_BUSY_PAUSE = 1.0
"""A front that asks for reports at shorter intervals has requests: an idle front polls seldom."""


class ServedCluster:
    """A `ContentNode` with all shards of the cluster that a front serves."""

    def __init__(
        self,
        builder: ClusterBuilder,
        nodes: Discovery,
        open_writer: Callable[[int], CountingShardWriter],
        encoding_fingerprint: str,
    ) -> None:
        """`open_writer` returns the writer of a shard; `encoding_fingerprint` identifies the
        encoder of the vectors.
        """
        self._builder, self._nodes = builder, nodes
        self._open_writer, self._encoding = open_writer, encoding_fingerprint
        self._is_leaving = False
        self._reported_at = -math.inf

    def leave(self) -> None:
        """Makes `report` say that the front is leaving; other calls continue."""
        self._is_leaving = True

    async def report(self, deadline: Deadline) -> NodeReport:
        """Returns the shards that have a replica, and those that a node should serve and does not.

        Other fronts may have the rest of the index.
        """
        if self._is_leaving:
            raise LeavingError("the front node is leaving")
        self._record_report()
        cluster, view, nodes = self._cluster(), self._builder.view, self._nodes.nodes.values()
        known = {shard for node in nodes for shard, _ in node.errors()}
        missing = set(view.missing())
        errors = absence_errors(missing & known, nodes, view)
        # as a content node reports it: the work of all its shards
        reads = sum(max((each.reads_in_hand for each in node.infos), default=0) for node in nodes)
        infos = [
            replace(
                _joined(info, self._replicas(shard)),
                sequence=cluster.reached_sequence(shard),
                reads_in_hand=reads,
            )
            for shard, info in cluster.shard_infos.items()
            if shard not in missing
        ]
        replying = (fault for node in nodes if node.error is None for fault in node.faults)
        with_reason = {fault.shard for fault in replying if not fault.is_unreachable}
        faults = (
            ShardFault(shard, error, is_unreachable=shard not in with_reason)
            for shard, error in errors.items()
        )
        return NodeReport(tuple(infos), tuple(faults))

    def _replicas(self, shard: int) -> list[ShardInfo]:
        """The last reports of the replicas of a shard.

        The cluster's own report may be older: it is replaced only if a shard has changed.
        """
        addresses = self._builder.view.replicas.get(shard, ())
        infos = (self._nodes.info(ReplicaAt(address, shard)) for address in addresses)
        return [info for info in infos if info is not None]

    def _record_report(self) -> None:
        """Counts a report as a request if the fronts that use this one have requests.

        They may answer from their caches, and then only poll.
        """
        now, last = self._nodes.now(), self._reported_at
        self._reported_at = now
        if now - last < _MAX_BUSY_PAUSE:
            self._nodes.record_request()

    def searcher(self, shard: int | None) -> Searcher:
        """Returns a shard with its replicas; None stands for the only one."""
        self._nodes.record_request()
        cluster = self._cluster()
        if shard is not None and shard in cluster.split_shards:
            return cluster.split_shards[shard]
        return cluster.searchers[_number(cluster.shard_infos, shard)]

    async def retrieve(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> list[Retrieved | Exception]:
        """Retrieves from several shards, with few calls to nodes: see `ContentNode`.

        A node that hangs makes only its shards late.
        """
        self._nodes.record_request()
        cluster = self._cluster()
        if cluster.joint is None:
            raise UnavailableError("this front node calls each shard alone")
        deadline = deadline.before_reply()
        results = await cluster.joint.retrieve_each(question, depth, shards, deadline)
        for place, requested in enumerate(shards):
            # another front may not know of a split yet
            if searcher := cluster.split_shards.get(requested.shard):
                own = replace(depth, after=requested.after)
                try:
                    results[place] = await searcher.retrieve(question, own, deadline)
                except WinnowError as error:
                    results[place] = error
        return join(results, depth)

    def writing(self, shard: int | None) -> WritableShard:
        """Returns a shard that takes writes by any of its replicas that can."""
        infos = self._cluster().shard_infos
        number = _number(infos, shard)
        return WritableShard(self._open_writer(number), infos[number], self._encoding)

    def _cluster(self) -> Cluster:
        if self._builder.cluster is None:
            raise UnavailableError("the front node has not found its shards yet")
        return self._builder.cluster


def _number(infos: Mapping[int, ShardInfo], shard: int | None) -> int:
    """The number of a shard.

    Raises IdentityError if none is named and there are several, and UnavailableError if there is no
    such shard.
    """
    if shard is None and len(infos) != 1:
        raise IdentityError(
            f"this front node serves {len(infos)} shards, and the call names none of them"
        )
    number = next(iter(infos)) if shard is None else shard
    if number not in infos:
        raise UnavailableError(f"this front node does not serve shard {number}")
    return number


def _joined(info: ShardInfo, replicas: Sequence[ShardInfo]) -> ShardInfo:
    """Returns the description of a shard with what depends on all its replicas.

    They share its reads. It takes writes if a replica does: of two that claim to, the one with most
    moves.
    """
    if not replicas:
        return info
    owners = [each.moves for each in replicas if not each.writes_elsewhere]
    return replace(
        info,
        seconds_per_read=shard_pace([each.seconds_per_read for each in replicas]) or 0.0,
        writes_elsewhere=not owners,
        moves=max(owners or [each.moves for each in replicas]),
        fronts=1 + min(each.fronts for each in replicas),
    )
