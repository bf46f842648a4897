"""The assignment of the shards of an index to content nodes. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from winnow.domain.partition import MAX_SPLITS, Partition, halves_of, is_number
from winnow.domain.shard import MAX_SHARDS
from winnow.errors import InvalidRequestError, Violation

_MAX_LISTED = 10
"""Maximum number of shards that an error lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The nodes that should serve each shard. Nodes open and close shards to follow it."""

    index_id: str
    shards: int
    """Number of shards that the index was built with."""
    version: int
    """Grows by one with each change."""
    nodes: Mapping[str, str]
    """Address of each node, by its name."""
    holders: Mapping[int, tuple[str, ...]]
    """Names of the nodes of each shard, by its number."""

    def __post_init__(self) -> None:
        """Raises InvalidRequestError unless the shards are those of an index, every shard has
        nodes, and all of them are known.
        """
        if not 1 <= self.shards <= MAX_SHARDS:
            raise _invalid("shards", f"{self.shards} is not from 1 to {MAX_SHARDS:,}")
        try:
            _ = self.partition
        except ValueError as error:
            raise _invalid("holders", str(error)) from error
        for shard, names in self.holders.items():
            if not names:
                raise _invalid(f"holders[{shard}]", "it names no node")
            if len(set(names)) < len(names):
                raise _invalid(f"holders[{shard}]", "it names a node twice")
            if unknown := set(names) - set(self.nodes):
                raise _invalid(f"holders[{shard}]", f"node {min(unknown)} is not among the nodes")

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
        """Number of shards of each node."""
        loads = Counter(dict.fromkeys(self.nodes, 0))
        loads.update(name for names in self.holders.values() for name in names)
        return loads

    def changed(
        self, holders: Mapping[int, tuple[str, ...]], nodes: Mapping[str, str]
    ) -> "Assignment":
        """The next version, with other holders of some shards.

        `nodes` has the addresses of all nodes that run. Of the others, those without shards are
        left out.
        """
        holders = {**self.holders, **holders}
        used = {name for names in holders.values() for name in names}
        others = {name: self.nodes[name] for name in used & self.nodes.keys()}
        return replace(self, version=self.version + 1, nodes={**others, **nodes}, holders=holders)

    def with_move(self, shard: int, node: str, to: str, nodes: Mapping[str, str]) -> "Assignment":
        """The next version, in which a shard is on another node.

        Args:
            shard: number of the shard.
            node: name of the node that has it; empty for its only one.
            to: name of the node that gets it.
            nodes: addresses of all nodes that run, by name.

        Raises InvalidRequestError if there is no such shard or node, `node` does not have the
        shard, `to` has it already, or no node is named for a shard with several.

        """
        names = self.holders.get(shard)
        if names is None:
            raise self._unknown(shard)
        if to not in nodes:
            known = ", ".join(sorted(nodes)) or "none"
            raise _invalid("to", f"no node {to} runs; those that do: {known}")
        if to in names:
            raise _invalid("to", f"node {to} has shard {shard} already")
        if not node and len(names) > 1:
            raise _invalid("from", f"shard {shard} is on nodes {', '.join(names)}: name one")
        node = node or names[0]
        if node not in names:
            raise _invalid("from", f"shard {shard} is on {', '.join(names)}, not on {node}")
        moved = tuple(to if name == node else name for name in names)
        return self.changed({shard: moved}, nodes)

    def with_split(self, shard: int, nodes: Mapping[str, str]) -> "Assignment":
        """The next version, in which a shard is split in two, on the nodes that have it.

        `nodes` has the addresses of all nodes that run. Raises InvalidRequestError if there is no
        such shard, or it cannot be split any more.
        """
        names = self.holders.get(shard)
        if names is None:
            raise self._unknown(shard)
        halves = dict.fromkeys(halves_of(shard, self.shards), names)
        if not is_number(max(halves), self.shards) or len(self.holders) == MAX_SHARDS:
            raise _invalid(
                "shard",
                f"shard {shard} cannot be split: at most {MAX_SPLITS} times, and an index has at "
                f"most {MAX_SHARDS:,} shards",
            )
        split = replace(self, holders={**_without(self.holders, shard), **halves})
        return split.changed({}, nodes)

    def _unknown(self, shard: int) -> InvalidRequestError:
        parts = self.partition.parts_of(shard)
        if parts and all(part > shard for part in parts):
            listed = ", ".join(map(str, parts))
            return _invalid("shard", f"shard {shard} was split: name one of {listed}")
        known = ", ".join(map(str, sorted(self.holders)[:_MAX_LISTED]))
        more = " and others" if len(self.holders) > _MAX_LISTED else ""
        return _invalid("shard", f"there is no shard {shard}: the index has {known}{more}")


def _without(holders: Mapping[int, tuple[str, ...]], shard: int) -> dict[int, tuple[str, ...]]:
    return {each: names for each, names in holders.items() if each != shard}


def _invalid(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(Violation(field, description))
