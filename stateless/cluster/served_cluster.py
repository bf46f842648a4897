"""Serves the shards of a front's cluster to other fronts, as a content node does.

A front that uses other fronts as nodes calls few nodes, even if the index has many shards.
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
"""Seconds between two reports below which the other fronts are taken to have requests. Idle fronts
poll less often.
"""


class ServedCluster:
    """A `ContentNode` with all shards of the cluster that a front serves."""

    def __init__(
        self,
        builder: ClusterBuilder,
        nodes: Discovery,
        open_writer: Callable[[int], CountingShardWriter],
        encoding_fingerprint: str,
    ) -> None:
        """`open_writer` returns the writer of a shard. `encoding_fingerprint` identifies the
        encoder of the vectors.
        """
        self._builder, self._nodes = builder, nodes
        self._open_writer, self._encoding = open_writer, encoding_fingerprint
        self._is_leaving = False
        self._reported_at = -math.inf

    def start_leaving(self) -> None:
        """Makes `report` raise LeavingError. Other calls are still served."""
        self._is_leaving = True

    async def report(self, deadline: Deadline) -> NodeReport:
        """Returns the shards with a replica, and faults of the shards that nodes fail to serve.

        Shards that no node has are left out: other fronts may have them.
        """
        if self._is_leaving:
            raise LeavingError("the front node is leaving")
        self._record_report()
        cluster, view, nodes = self._cluster(), self._builder.view, self._nodes.nodes.values()
        known = {shard for node in nodes for shard, _ in node.errors()}
        missing = set(view.missing())
        errors = absence_errors(missing & known, nodes, view)
        # the reads of all nodes together, as a content node reports the reads of all its shards
        reads = sum(max((each.reads_in_hand for each in node.infos), default=0) for node in nodes)
        infos = [
            replace(
                _merged_info(info, self._replicas(shard)),
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

        The cluster's info of the shard may be older, because it is replaced only after a change.
        """
        addresses = self._builder.view.replicas.get(shard, ())
        infos = (self._nodes.info(ReplicaAt(address, shard)) for address in addresses)
        return [info for info in infos if info is not None]

    def _record_report(self) -> None:
        """Records a request if the fronts that use this front have requests.

        They may answer these requests from their caches, and only poll this front.
        """
        now, last = self._nodes.now(), self._reported_at
        self._reported_at = now
        if now - last < _MAX_BUSY_PAUSE:
            self._nodes.record_request()

    def searcher(self, shard: int | None) -> Searcher:
        """Returns the searcher of a shard; None means the only shard."""
        self._nodes.record_request()
        cluster = self._cluster()
        if shard is not None and shard in cluster.split_shards:
            return cluster.split_shards[shard]
        return cluster.searchers[_shard_number(cluster.shard_infos, shard)]

    async def retrieve(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> list[Retrieved | Exception]:
        """Retrieves from several shards by joint calls, as `ContentNode.retrieve` specifies.

        If a node hangs, only its shards are late.
        """
        self._nodes.record_request()
        cluster = self._cluster()
        if cluster.joint is None:
            raise UnavailableError("this front node does not support joint calls")
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
        """Returns the writer of a shard, which forwards writes to a replica that takes writes."""
        infos = self._cluster().shard_infos
        number = _shard_number(infos, shard)
        return WritableShard(self._open_writer(number), infos[number], self._encoding)

    def _cluster(self) -> Cluster:
        if self._builder.cluster is None:
            raise UnavailableError("the front node has not found its shards yet")
        return self._builder.cluster


def _shard_number(infos: Mapping[int, ShardInfo], shard: int | None) -> int:
    """Returns the number of a shard; None means the only shard.

    Raises IdentityError for None if there are several shards, and UnavailableError if the front
    does not serve the shard.
    """
    if shard is None and len(infos) != 1:
        raise IdentityError(
            f"this front node serves {len(infos)} shards, but the call names no shard"
        )
    number = next(iter(infos)) if shard is None else shard
    if number not in infos:
        raise UnavailableError(f"this front node does not serve shard {number}")
    return number


def _merged_info(info: ShardInfo, replicas: Sequence[ShardInfo]) -> ShardInfo:
    """Returns `info` with the fields that depend on all replicas of the shard.

    The replicas share the reads of the shard. The shard takes writes if one of its replicas does.
    If several replicas claim to take writes, the one with most moves counts.
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
