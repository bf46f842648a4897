"""The assignment of an index's shards to content nodes. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from winnow.domain.partition import MAX_SPLITS, Partition, halves_of, is_shard_number
from winnow.domain.shard import MAX_SHARDS
from winnow.errors import InvalidRequestError, invalid_field

_MAX_LISTED = 10
"""Maximum number of shards that an error lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Which nodes should serve each shard. Nodes open and close shards to follow the assignment."""

    index_id: str
    shards: int
    """Number of shards that the index was built with."""
    version: int
    """Grows by one with each change."""
    nodes: Mapping[str, str]
    """Address of each node, by its name."""
    holders: Mapping[int, tuple[str, ...]]
    """Names of the nodes that should serve each shard, by shard number."""

    def __post_init__(self) -> None:
        """Raises InvalidRequestError unless the shards form an index and have known nodes."""
        if not 1 <= self.shards <= MAX_SHARDS:
            raise invalid_field(
                "shards", f"the index has {self.shards} shards, and not 1 to {MAX_SHARDS:,}"
            )
        try:
            _ = self.partition
        except ValueError as error:
            raise invalid_field("holders", str(error)) from error
        for shard, names in self.holders.items():
            if not names:
                raise invalid_field(f"holders[{shard}]", f"shard {shard} has no node")
            if len(set(names)) < len(names):
                raise invalid_field(f"holders[{shard}]", f"shard {shard} has a node twice")
            if unknown := set(names) - set(self.nodes):
                raise invalid_field(
                    f"holders[{shard}]",
                    f"shard {shard} has node {min(unknown)}, which is not among the nodes",
                )

    @property
    def partition(self) -> Partition:
        """The shards of the index."""
        return Partition(self.shards, self.holders.keys())

    @property
    def is_split(self) -> bool:
        """Whether a shard was split since the index was built."""
        return any(shard >= self.shards for shard in self.holders)

    def of_node(self, name: str) -> set[int]:
        """The shards that are assigned to a node."""
        return {shard for shard, names in self.holders.items() if name in names}

    def loads(self) -> Counter[str]:
        """Number of shards assigned to each node, by the node's name."""
        loads = Counter(dict.fromkeys(self.nodes, 0))
        loads.update(name for names in self.holders.values() for name in names)
        return loads

    def changed(
        self, holders: Mapping[int, tuple[str, ...]], nodes: Mapping[str, str]
    ) -> "Assignment":
        """Returns the next version, in which some shards have the given `holders`.

        `nodes` has the addresses of all running nodes. Nodes that neither run nor hold a shard are
        dropped.
        """
        holders = {**self.holders, **holders}
        used = {name for names in holders.values() for name in names}
        others = {name: self.nodes[name] for name in used & self.nodes.keys()}
        return replace(self, version=self.version + 1, nodes={**others, **nodes}, holders=holders)

    def with_move(self, shard: int, node: str, to: str, nodes: Mapping[str, str]) -> "Assignment":
        """Returns the next version, in which a shard is moved to another node.

        Args:
            shard: number of the shard.
            node: name of the node that holds the shard; may be empty if there is only one.
            to: name of the node that receives the shard.
            nodes: addresses of all running nodes, by name.

        Raises InvalidRequestError if there is no such shard or node, `node` does not hold the
        shard, `to` already holds it, or `node` is empty and several nodes hold the shard.

        """
        names = self.holders.get(shard)
        if names is None:
            raise self._unknown(shard)
        if to not in nodes:
            known = ", ".join(sorted(nodes)) or "none"
            raise invalid_field("to", f"there is no running node {to}: choose one of {known}")
        if to in names:
            raise invalid_field("to", f"node {to} already has shard {shard}")
        if not node and len(names) > 1:
            raise invalid_field(
                "from", f"shard {shard} is on nodes {', '.join(names)}: name one by --from"
            )
        node = node or names[0]
        if node not in names:
            raise invalid_field("from", f"shard {shard} is on {', '.join(names)}, not on {node}")
        moved = tuple(to if name == node else name for name in names)
        return self.changed({shard: moved}, nodes)

    def with_split(self, shard: int, nodes: Mapping[str, str]) -> "Assignment":
        """Returns the next version, in which a shard is split in two on the nodes that hold it.

        `nodes` has the addresses of all running nodes. Raises InvalidRequestError if there is no
        such shard, or it cannot be split further.
        """
        names = self.holders.get(shard)
        if names is None:
            raise self._unknown(shard)
        halves = dict.fromkeys(halves_of(shard, self.shards), names)
        if not is_shard_number(max(halves), self.shards) or len(self.holders) == MAX_SHARDS:
            raise invalid_field(
                "shard",
                f"shard {shard} cannot be split: a shard can be split at most {MAX_SPLITS} times, "
                f"and an index has at most {MAX_SHARDS:,} shards",
            )
        split = replace(self, holders={**_without(self.holders, shard), **halves})
        return split.changed({}, nodes)

    def _unknown(self, shard: int) -> InvalidRequestError:
        parts = self.partition.parts_of(shard)
        if parts and all(part > shard for part in parts):
            listed = ", ".join(map(str, parts))
            return invalid_field("shard", f"shard {shard} was split: name one of {listed}")
        known = ", ".join(map(str, sorted(self.holders)[:_MAX_LISTED]))
        more = " and others" if len(self.holders) > _MAX_LISTED else ""
        return invalid_field("shard", f"there is no shard {shard}: the index has {known}{more}")


def _without(holders: Mapping[int, tuple[str, ...]], shard: int) -> dict[int, tuple[str, ...]]:
    return {each: names for each, names in holders.items() if each != shard}
