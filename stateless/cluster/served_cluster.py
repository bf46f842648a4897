"""The shards of a cluster, as the content node that other fronts call.

So fronts can stand before fronts, and each calls few nodes, however many shards there are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from winnow.candidates.joint import join
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import NodeReport, ShardFault, ShardInfo
from winnow.errors import IdentityError, LeavingError, UnavailableError
from winnow.searcher import RequestedShard, Retrieved, Searcher
from winnow.shard_writer import CountingShardWriter, WritableShard
from winnow.stateless.cluster.absence import absence_errors
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.discovery import Discovery


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

    def leave(self) -> None:
        """Makes `report` tell that the front is leaving; other calls continue."""
        self._is_leaving = True

    async def report(self, deadline: Deadline) -> NodeReport:
        """Returns the shards that have a replica, and those that a node should serve and does not.

        Other fronts may have the rest of the index.
        """
        if self._is_leaving:
            raise LeavingError("the front node is leaving")
        cluster, view, nodes = self._cluster(), self._builder.view, self._nodes.nodes.values()
        known = {shard for node in nodes for shard, _ in node.errors()}
        missing = set(view.missing())
        errors = absence_errors(missing & known, nodes, view)
        # as a content node reports it: the work of all its shards
        reads = sum(max((each.reads_in_hand for each in node.infos), default=0) for node in nodes)
        infos = [
            replace(info, sequence=cluster.reached_sequence(shard), reads_in_hand=reads)
            for shard, info in cluster.shard_infos.items()
            if shard not in missing
        ]
        return NodeReport(tuple(infos), tuple(ShardFault(*each) for each in errors.items()))

    def searcher(self, shard: int | None) -> Searcher:
        """Returns a shard with its replicas; None stands for the only one."""
        cluster = self._cluster()
        return cluster.searchers[_number(cluster.shard_infos, shard)]

    async def retrieve(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> list[Retrieved | Exception]:
        """Retrieves from several shards, with few calls to nodes: see `ContentNode`."""
        cluster = self._cluster()
        if cluster.joint is None:
            raise UnavailableError("this front node calls each shard alone")
        results = await cluster.joint.retrieve_each(question, depth, shards, deadline)
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
    """The number of a shard. Raises IdentityError if none is named and there are several, and
    UnavailableError if there is no such shard.
    """
    if shard is None and len(infos) != 1:
        raise IdentityError(
            f"this front node serves {len(infos)} shards, and the call names none of them"
        )
    number = next(iter(infos)) if shard is None else shard
    if number not in infos:
        raise UnavailableError(f"this front node does not serve shard {number}")
    return number
