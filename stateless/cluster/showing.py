"""The state of the cluster, for people who operate it.

Knows the view that is served and the last replies of its nodes; asks no node.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from winnow.domain.cluster_state import ClusterState, NodeState, ReplicaState, ShardState
from winnow.errors import LeavingError, NotLoadedError, WinnowError
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.membership import IndexIdentity
from winnow.stateless.cluster.node import Node
from winnow.stateless.replicas.replicated import ReplicaCondition

_OUT = "it failed or was slow: it is tried again soon"
_NEW = "it has just replied: it gets calls soon"
_UNUSED = ReplicaCondition(active=True)


@dataclass(frozen=True, slots=True)
class _Told:
    """Which nodes are refused, and which serve, by address."""

    refused: Mapping[str, str]
    serving: set[str]


class Showing:
    """Shows the cluster that is served."""

    def __init__(self, builder: ClusterBuilder, nodes: Discovery) -> None:
        self._builder, self._nodes = builder, nodes

    def show(self) -> ClusterState:
        """Every shard with its replicas, and every other node."""
        view, nodes = self._builder.view, sorted(self._nodes.nodes.items())
        told = _Told(view.refused, {each for own in view.replicas.values() for each in own})
        infos = view.expected()
        if view.identity is None or infos is None:
            return ClusterState(strangers=[self._replica(node, told, {}) for _, node in nodes])
        shown: dict[int | None, list[ReplicaState]] = {}
        conditions: dict[int | None, Mapping[str, ReplicaCondition]] = {
            shard: self._builder.conditions(shard) for shard in infos
        }
        for _, node in nodes:
            place = _place(node, view.identity)
            known = conditions.get(place, {})
            shown.setdefault(place, []).append(self._replica(node, told, known))
        latest = self._builder.cluster.latest_sequences() if self._builder.cluster else {}
        shards = [
            ShardState(shard, info.passages, latest.get(shard, info.sequence), shown.get(shard, ()))
            for shard, info in infos.items()
        ]
        return ClusterState(view.identity.index_id, shards, shown.get(None, ()))

    def _replica(
        self, node: Node, told: _Told, known: Mapping[str, ReplicaCondition]
    ) -> ReplicaState:
        condition = known.get(node.address, _UNUSED)
        state, reason = _state(node, told, condition)
        silence, info = self._nodes.silence(node.address), node.info
        if info is None:
            return ReplicaState(
                address=node.address, state=state, reason=reason, calls_in_hand=condition.calls
            )
        return ReplicaState(
            address=node.address,
            state=state,
            reason=reason,
            calls_in_hand=condition.calls,
            reads_in_hand=info.reads_in_hand,
            seconds_per_read=info.seconds_per_read,
            sequence=max(info.sequence, condition.sequence),
            lag=condition.behind,
            passages=info.passages,
            generation=info.generation,
            writable=bool(info.log_id),
            heard_seconds=silence,
        )


def _place(node: Node, served: IndexIdentity) -> int | None:
    """The shard that a node belongs to; None if that is not known, or it is of another index."""
    info = node.info
    fits = info is not None and IndexIdentity.of(info) == served and info.shard < served.shards
    return info.shard if info is not None and fits else None


def _state(node: Node, told: _Told, condition: ReplicaCondition) -> tuple[NodeState, str]:
    """Whether a node gets calls, and why not."""
    if node.address in told.refused:
        return NodeState.REFUSED, told.refused[node.address]
    if node.address in told.serving:
        return (NodeState.SERVING, "") if condition.active else (NodeState.OUT, _OUT)
    if node.error is None:
        return NodeState.OUT, _NEW
    return _failed(node.error), str(node.error)


def _failed(error: WinnowError) -> NodeState:
    if isinstance(error, NotLoadedError):
        return NodeState.NOT_LOADED
    return NodeState.LEAVING if isinstance(error, LeavingError) else NodeState.UNREACHABLE
