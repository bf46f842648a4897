"""Reports the state of the cluster to operators.

Knows the served view and the last replies of its nodes; calls no node.
"""

from collections.abc import Mapping
from dataclasses import replace

from winnow.domain.cluster_state import ClusterState, NodeState, ReplicaState, ShardState
from winnow.errors import LeavingError, NotLoadedError, WinnowError
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.membership import ClusterView, IndexIdentity
from winnow.stateless.cluster.node import Node
from winnow.stateless.replicas.replicated import ReplicaCondition

_EJECTED = "it failed or was slow: it is tried again soon"
_NEW = "it has just replied: it gets calls soon"
_UNUSED = ReplicaCondition(is_active=True)


class ClusterReporter:
    """Reports the cluster that is served."""

    def __init__(self, builder: ClusterBuilder, nodes: Discovery) -> None:
        self._builder, self._nodes = builder, nodes

    def report(self) -> ClusterState:
        """The state of every shard with its replicas, and of every other node."""
        view, nodes = self._builder.view, sorted(self._nodes.nodes.items())
        infos = view.expected()
        serving = {address for own in view.replicas.values() for address in own}
        if view.identity is None or infos is None:
            return ClusterState(
                strangers=[self._replica(node, view, serving, _UNUSED) for _, node in nodes]
            )
        conditions: dict[int | None, Mapping[str, ReplicaCondition]] = {
            shard: self._builder.conditions(shard) for shard in infos
        }
        states: dict[int | None, list[ReplicaState]] = {}
        for address, node in nodes:
            shard = _shard_of(node, view.identity)
            condition = conditions.get(shard, {}).get(address, _UNUSED)
            states.setdefault(shard, []).append(self._replica(node, view, serving, condition))
        latest = self._builder.cluster.latest_sequences() if self._builder.cluster else {}
        shards = [
            ShardState(
                shard, info.passages, latest.get(shard, info.sequence), states.get(shard, ())
            )
            for shard, info in infos.items()
        ]
        return ClusterState(view.identity.index_id, shards, states.get(None, ()))

    def _replica(
        self, node: Node, view: ClusterView, serving: set[str], condition: ReplicaCondition
    ) -> ReplicaState:
        state, reason = _state(node, view, serving, condition)
        replica = ReplicaState(
            address=node.address, state=state, reason=reason, calls_in_hand=condition.calls
        )
        if node.info is None:
            return replica
        return replace(
            replica,
            reads_in_hand=node.info.reads_in_hand,
            seconds_per_read=node.info.seconds_per_read,
            sequence=max(node.info.sequence, condition.sequence),
            lag=condition.lag,
            passages=node.info.passages,
            generation=node.info.generation,
            writable=bool(node.info.log_id),
            heard_seconds=self._nodes.silence(node.address),
        )


def _shard_of(node: Node, served: IndexIdentity) -> int | None:
    """The shard of a node; None if it is unknown or of another index."""
    info = node.info
    fits = info is not None and IndexIdentity.of(info) == served and info.shard < served.shards
    return info.shard if info is not None and fits else None


def _state(
    node: Node, view: ClusterView, serving: set[str], condition: ReplicaCondition
) -> tuple[NodeState, str]:
    """Whether a node gets calls, and the reason if it does not."""
    if node.address in view.refused:
        return NodeState.REFUSED, view.refused[node.address]
    if node.address in serving:
        return (NodeState.SERVING, "") if condition.is_active else (NodeState.OUT, _EJECTED)
    if node.error is None:
        return NodeState.OUT, _NEW
    return _state_of_failed(node.error), str(node.error)


def _state_of_failed(error: WinnowError) -> NodeState:
    if isinstance(error, NotLoadedError):
        return NodeState.NOT_LOADED
    return NodeState.LEAVING if isinstance(error, LeavingError) else NodeState.UNREACHABLE
