"""Decides which shards a node opens, splits and closes to follow an assignment. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass

from winnow.domain.assignment import Assignment
from winnow.domain.partition import ancestors_of, halves_of, parent_of
from winnow.domain.shard import NodeReport, ShardInfo


@dataclass(frozen=True, slots=True)
class HeldShard:
    """A shard that this node has."""

    info: ShardInfo | None
    """The shard's description; None while the shard is not served."""
    _: KW_ONLY
    must_be_replaced: bool = False
    """Whether this copy is permanently out of date: its writes are taken elsewhere."""
    can_split: bool = False
    """Whether this copy, or a half of it, takes the writes of the shard."""
    is_unfinished_half: bool = False
    """Whether this is a half whose parent, on this node, still takes the writes."""
    is_hidden: bool = False
    """Whether the shard is not reported to front nodes yet."""


@dataclass(frozen=True, slots=True)
class NextSteps:
    """The shards that a node opens, makes, shows or closes next."""

    to_open: tuple[int, ...] = ()
    """Shards that the node should serve and does not have."""
    to_make: tuple[int, ...] = ()
    """Halves that the node makes from its shards."""
    to_show: tuple[int, ...] = ()
    """Hidden shards that fronts may use from now on. Both halves of a shard appear at once."""
    to_close: tuple[int, ...] = ()
    """Shards that the node may close, because other copies or their halves serve instead."""


def next_steps(
    assignment: Assignment,
    name: str,
    held: Mapping[int, HeldShard],
    reports: Mapping[str, NodeReport],
) -> NextSteps:
    """Returns the next steps of a node.

    A shard is closed only once all nodes that it is assigned to serve it with all its writes. If it
    was split, this holds for its parts. A copy that is permanently out of date is closed once any
    other node serves the shard.

    Args:
        assignment: the assignment.
        name: the name of the node.
        held: its shards by number.
        reports: the last reports of the other nodes by name.

    """
    return _StepPlanner(assignment, name, held, reports).steps()


class _StepPlanner:
    def __init__(
        self,
        assignment: Assignment,
        name: str,
        held: Mapping[int, HeldShard],
        reports: Mapping[str, NodeReport],
    ) -> None:
        self._assignment, self._name, self._reports = assignment, name, reports
        self._partition = assignment.partition
        self._all_held = held
        self._held = {
            shard: copy
            for shard, copy in sorted(held.items())
            if self._belongs_to_index(shard, copy)
        }

    def steps(self) -> NextSteps:
        own = self._assignment.of_node(self._name)
        lacking = sorted(own - self._all_held.keys())
        return NextSteps(
            to_open=tuple(shard for shard in lacking if self._may_open(shard)),
            to_make=tuple(half for shard in self._held for half in self._halves_to_make(shard)),
            to_show=tuple(shard for shard in self._held if self._may_show(shard)),
            to_close=tuple(shard for shard in self._held if self._may_close(shard, own)),
        )

    def _belongs_to_index(self, shard: int, copy: HeldShard) -> bool:
        """Whether a shard belongs to the index of the assignment. Other shards are kept."""
        if not self._partition.parts_of(shard):
            return False
        if (info := copy.info) is None:
            return copy.must_be_replaced  # else its index is unknown
        return (info.index_id, info.shards) == (self._assignment.index_id, self._assignment.shards)

    def _was_split(self, shard: int) -> bool:
        """Whether the assignment has parts of the shard instead of it."""
        parts = self._partition.parts_of(shard)
        return shard not in self._partition and all(part > shard for part in parts)

    def _serving_nodes(self, shard: int, info: ShardInfo | None = None) -> set[str]:
        """Returns the nodes that serve a shard, take its writes and have all writes of `info`."""
        serving = set(nodes_serving(self._assignment.index_id, shard, info, self._reports))
        own = self._held.get(shard)
        if own is not None and not (own.is_hidden or own.must_be_replaced or own.info is None):
            serving.add(self._name)
        return serving

    def _halves_to_make(self, shard: int) -> list[int]:
        """Returns the halves that this node makes from its shard, because no node has them.

        If several nodes have the shard, the first one makes the halves and the others copy them.
        """
        others = nodes_serving(self._assignment.index_id, shard, None, self._reports)
        is_first = all(self._name < other for other in others)
        if not self._was_split(shard) or not self._held[shard].can_split or not is_first:
            return []
        return [
            half
            for half in halves_of(shard, self._assignment.shards)
            if half not in self._all_held
            and not all(map(self._serving_nodes, self._partition.parts_of(half)))
        ]

    def _may_open(self, shard: int) -> bool:
        """Whether to open or receive a shard now. A part exists only once its shard was split."""
        if self._serving_nodes(shard):
            return True
        reported = {info.shard for report in self._reports.values() for info in report.infos}
        known = reported | self._all_held.keys()
        built = self._assignment.shards
        if any(shard in ancestors_of(each, built) for each in known):
            return False  # its halves have later writes
        return not any(each in known for each in ancestors_of(shard, built))

    def _may_show(self, shard: int) -> bool:
        if not self._held[shard].is_hidden:
            return False
        parent = parent_of(shard, self._assignment.shards)
        if parent is None or parent not in self._all_held:
            # an unfinished half may lack writes of a parent that could not be loaded
            return not self._held[shard].is_unfinished_half
        return all(
            not self._held[half].is_unfinished_half
            if half in self._held
            else half not in self._all_held and self._is_served_elsewhere(half)
            for half in halves_of(parent, self._assignment.shards)
        )

    def _is_served_elsewhere(self, half: int) -> bool:
        return all(
            self._serving_nodes(part) - {self._name} for part in self._partition.parts_of(half)
        )

    def _may_close(self, shard: int, own: Collection[int]) -> bool:
        copy = self._held[shard]
        parent = parent_of(shard, self._assignment.shards)
        if parent is not None and parent in self._all_held:
            # the parent is closed first; a half that can no longer follow is closed and made again
            return copy.is_unfinished_half and (
                copy.must_be_replaced or self._is_split_cancelled(parent)
            )
        if self._was_split(shard):
            parts = self._partition.parts_of(shard)
            return all(self._is_part_served(part, copy.info) for part in parts)
        if shard not in self._partition or (shard in own and not copy.must_be_replaced):
            return False
        serving = self._serving_nodes(shard, copy.info) - {self._name}
        return (
            set(self._assignment.holders[shard]) <= serving if shard not in own else bool(serving)
        )

    def _is_part_served(self, part: int, info: ShardInfo | None) -> bool:
        """Whether the nodes of a part serve it, so that its parent is not needed for it.

        If a part has come back while it moved away, this node has a copy of it that must be
        replaced. The copy is closed after the parent. So another node is enough then.
        """
        serving = self._serving_nodes(part, info)
        needed = set(self._assignment.holders[part])
        own = self._all_held.get(part)
        if own is not None and own.must_be_replaced:
            needed.discard(self._name)
        return bool(serving) and needed <= serving

    def _is_split_cancelled(self, parent: int) -> bool:
        """Whether the assignment has the whole shard again before both halves were made.

        Once this node has both halves, it finishes the split instead.
        """
        halves = halves_of(parent, self._assignment.shards)
        lacks_half = not self._all_held.keys() >= set(halves)
        return (
            parent in self._partition and lacks_half and not self._all_held[parent].must_be_replaced
        )


def nodes_serving(
    index_id: str, shard: int, info: ShardInfo | None, reports: Mapping[str, NodeReport]
) -> list[str]:
    """Returns the names of the nodes that serve a shard and take its writes.

    Nodes that lack writes of `info` are left out.
    """
    return [
        name
        for name, report in sorted(reports.items())
        if any(_serves_shard(each, index_id, shard, info) for each in report.infos)
    ]


def _serves_shard(other: ShardInfo, index_id: str, shard: int, info: ShardInfo | None) -> bool:
    return (
        (other.index_id, other.shard) == (index_id, shard)
        and not other.writes_elsewhere
        and other.sequence >= (info.sequence if info is not None else 0)
    )


def other_nodes(assignment: Assignment, name: str) -> Collection[str]:
    """Returns the names of all other nodes, sorted."""
    return sorted(assignment.nodes.keys() - {name})
