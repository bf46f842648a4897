"""The assignment of the shards of an index to content nodes. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from winnow.domain.shard import MAX_SHARDS
from winnow.errors import InvalidRequestError, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The nodes that should serve each shard. Nodes open and close shards to follow it."""

    index_id: str
    shards: int
    """Number of shards of the index."""
    version: int
    """Grows by one with each change."""
    nodes: Mapping[str, str]
    """Address of each node, by its name."""
    holders: Mapping[int, tuple[str, ...]]
    """Names of the nodes of each shard, by its number."""

    def __post_init__(self) -> None:
        """Raises InvalidRequestError unless every shard has nodes, and all of them are known."""
        if not 1 <= self.shards <= MAX_SHARDS:
            raise _invalid("shards", f"{self.shards} is not from 1 to {MAX_SHARDS:,}")
        if set(self.holders) != set(range(self.shards)):
            raise _invalid("holders", f"it does not name the shards 0 to {self.shards - 1}")
        for shard, names in self.holders.items():
            if not names:
                raise _invalid(f"holders[{shard}]", "it names no node")
            if len(set(names)) < len(names):
                raise _invalid(f"holders[{shard}]", "it names a node twice")
            if unknown := set(names) - set(self.nodes):
                raise _invalid(f"holders[{shard}]", f"node {min(unknown)} is not among the nodes")

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
            raise _invalid("shard", f"there is no shard {shard}: the index has {self.shards}")
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


def _invalid(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(Violation(field, description))
