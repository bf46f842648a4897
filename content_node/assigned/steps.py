"""Decides which shards a node opens and closes to follow an assignment. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from winnow.domain.assignment import Assignment
from winnow.domain.shard import NodeReport, ShardInfo


@dataclass(frozen=True, slots=True)
class HeldShard:
    """A shard that this node has."""

    info: ShardInfo | None
    """The shard's description; None while the shard is not served."""
    must_be_replaced: bool = False
    """Whether this copy is permanently out of date: another node is the owner of the shard."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What a node does next."""

    open: tuple[int, ...] = ()
    """Shards that the node should serve and does not have."""
    close: tuple[int, ...] = ()
    """Shards that the node may close, because other nodes serve them instead."""


def next_steps(
    assignment: Assignment,
    name: str,
    held: Mapping[int, HeldShard],
    reports: Mapping[str, NodeReport],
) -> Steps:
    """The next steps of a node.

    A shard is closed only once all nodes that it is assigned to serve it with all its writes. A
    copy that is permanently out of date is closed once any other node serves the shard.

    Args:
        assignment: the assignment.
        name: the name of the node.
        held: its shards by number.
        reports: the last reports of the other nodes by name.

    """
    own = assignment.of_node(name)
    close = []
    for shard, copy in sorted(held.items()):
        is_settled = shard in own and not copy.must_be_replaced
        if is_settled or not _is_of(assignment, shard, copy):
            continue
        serving = nodes_with(assignment.index_id, shard, copy.info, reports)
        wanted = assignment.holders[shard]
        if set(wanted) <= set(serving) if shard not in own else serving:
            close.append(shard)
    return Steps(open=tuple(sorted(own - held.keys())), close=tuple(close))


def _is_of(assignment: Assignment, shard: int, copy: HeldShard) -> bool:
    """Whether a shard is one of the assignment. Shards of another index or numbering are kept."""
    if shard not in assignment.holders:
        return False
    if (info := copy.info) is None:
        return copy.must_be_replaced  # else its index is unknown
    return (info.index_id, info.shards) == (assignment.index_id, assignment.shards)


def nodes_with(
    index_id: str, shard: int, info: ShardInfo | None, reports: Mapping[str, NodeReport]
) -> list[str]:
    """The names of nodes that serve a shard and take its writes, with all writes of `info`."""
    return [
        name
        for name, report in sorted(reports.items())
        if any(_serves(each, index_id, shard, info) for each in report.infos)
    ]


def _serves(other: ShardInfo, index_id: str, shard: int, info: ShardInfo | None) -> bool:
    return (
        (other.index_id, other.shard) == (index_id, shard)
        and not other.writes_elsewhere
        and other.sequence >= (info.sequence if info is not None else 0)
    )


def other_nodes(assignment: Assignment, name: str) -> Collection[str]:
    """The names of all other nodes."""
    return sorted(assignment.nodes.keys() - {name})
