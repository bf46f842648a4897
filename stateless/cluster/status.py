"""Reports the state of the cluster to operators.

The report is built from the served view and the last replies of nodes. No node is called.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from winnow.domain.cluster_state import ClusterState, NodeState, ReplicaState, ShardState
from winnow.domain.shard import ShardInfo
from winnow.errors import LeavingError, NotLoadedError, WinnowError
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.membership import ClusterView, IndexIdentity
from winnow.stateless.cluster.node import Node, ReplicaAt
from winnow.stateless.replicas.replicated import ReplicaCondition

_EJECTED = "it failed or was slow, and is tried again soon"
_NEW = "it has just replied, and will get calls soon"
_EMPTY = "it has no shard"
_UNUSED = ReplicaCondition(is_active=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One shard of a content node, as the node last reported it."""

    node: Node
    shard: int | None = None
    """Number of the shard in the served index; None if it is unknown or of another index."""
    info: ShardInfo | None = None
    """The shard's info; None if the node does not serve the shard."""
    error: WinnowError | None
    """Why the node does not serve the shard; None if it does."""
    is_loading: bool = False
    """Whether the node replies, and does not serve the shard because it is still loading."""
    refusal: str = ""
    """Why the front refuses the shard; empty if it does not."""
    unused: str = ""
    """Why the front does not use the matching shard; empty if it does."""


class ClusterReporter:
    """Reports the state of the served cluster and of all nodes."""

    def __init__(self, builder: ClusterBuilder, nodes: Discovery) -> None:
        self._builder, self._nodes = builder, nodes

    def report(self) -> ClusterState:
        """Returns the state of every shard with its replicas, and of all other shards of nodes."""
        view, nodes = self._builder.view, sorted(self._nodes.nodes.items())
        infos = view.expected() or {}
        entries = [entry for _, node in nodes for entry in _entries(node, view)]
        conditions: dict[int | None, Mapping[str, ReplicaCondition]] = {
            shard: self._builder.conditions(shard) for shard in infos
        }
        serving = {ReplicaAt(each, shard) for shard, own in view.replicas.items() for each in own}
        states: dict[int | None, list[ReplicaState]] = {shard: [] for shard in (None, *infos)}
        for entry in entries:
            condition = conditions.get(entry.shard, {}).get(entry.node.address, _UNUSED)
            shard = entry.shard if infos else None
            states[shard].append(self._replica(entry, serving, condition))
        latest = self._builder.cluster.latest_sequences() if self._builder.cluster else {}
        shards = tuple(
            ShardState(shard, info.passages, latest.get(shard, info.sequence), states[shard])
            for shard, info in infos.items()
        )
        if view.identity is None or not infos:
            return ClusterState(shards=shards, strangers=tuple(states[None]))
        index = view.identity
        return ClusterState(index.index_id, shards, tuple(states[None]), index.shards)

    def _replica(
        self, entry: _Entry, serving: set[ReplicaAt], condition: ReplicaCondition
    ) -> ReplicaState:
        state, reason = _state(entry, serving, condition)
        address, info = entry.node.address, entry.info
        report = entry.node.report
        replica = ReplicaState(
            address=address,
            state=state,
            reason=reason,
            calls_in_hand=condition.calls,
            node=report.node if report else "",
            node_address=report.address if report else "",
        )
        if info is None:
            return replica
        return replace(
            replica,
            reads_in_hand=info.reads_in_hand,
            seconds_per_read=info.seconds_per_read,
            sequence=max(info.sequence, condition.sequence),
            lag=condition.lag,
            passages=info.passages,
            generation=info.generation,
            writable=bool(info.log_id),
            journaled=info.journaled,
            heard_seconds=self._nodes.silence(address),
        )


def _entries(node: Node, view: ClusterView) -> list[_Entry]:
    """Returns an entry for each shard of a node, or one entry without a shard if it has none."""
    entries = []
    for info in node.infos:
        fits = IndexIdentity.of(info) == view.identity and info.shard in view.replicas
        entry = _Entry(
            node=node,
            shard=info.shard if fits else None,
            info=info,
            error=node.error,
            refusal=view.refused.get(ReplicaAt(node.address, info.shard), ""),
            unused=view.unused.get(ReplicaAt(node.address, info.shard), ""),
        )
        entries.append(entry)
    for fault in node.faults:
        shard = fault.shard if fault.shard in view.replicas else None
        entry = _Entry(
            node=node,
            shard=shard,
            error=node.error or fault.error,
            is_loading=node.error is None and not fault.is_unreachable,
        )
        entries.append(entry)
    return entries or [_Entry(node=node, error=node.error)]


def _state(
    entry: _Entry, serving: set[ReplicaAt], condition: ReplicaCondition
) -> tuple[NodeState, str]:
    """Returns the state of a replica, and the reason if it gets no calls."""
    if entry.refusal:
        return NodeState.REFUSED, entry.refusal
    if (entry.node.address, entry.shard) in serving:
        return (NodeState.SERVING, "") if condition.is_active else (NodeState.OUT, _EJECTED)
    if entry.error is None:
        return NodeState.OUT, entry.unused or (_NEW if entry.info is not None else _EMPTY)
    return _state_of_failed(entry.error, entry.is_loading), str(entry.error)


def _state_of_failed(error: WinnowError, is_loading: bool) -> NodeState:
    if isinstance(error, NotLoadedError):
        return NodeState.NOT_LOADED
    if isinstance(error, LeavingError):
        return NodeState.LEAVING
    return NodeState.LOADING if is_loading else NodeState.UNREACHABLE
