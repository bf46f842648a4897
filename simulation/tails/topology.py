"""Which processes a simulated cluster has, and on which machines they run."""

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True, slots=True)
class Topology:
    """The shape of a cluster."""

    shards: int
    _: KW_ONLY
    shards_per_node: int = 1
    replicas: int = 1
    """Number of content nodes that hold each shard."""
    middle_fronts: int = 0
    """Number of middle fronts, which divide the nodes among them; 0 for a front that calls all
    nodes.
    """
    one_machine: bool = False
    """Whether all processes and the clients share one machine. Otherwise each has its own."""

    def nodes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shards of each content node, by its name."""
        firsts = range(0, self.shards, self.shards_per_node)
        return {
            f"node-{first // self.shards_per_node}-{replica}": tuple(
                range(first, min(first + self.shards_per_node, self.shards))
            )
            for first in firsts
            for replica in range(self.replicas)
        }

    def groups(self) -> dict[str, tuple[str, ...]]:
        """Returns the nodes of each middle front, by its name. Replicas are in the same group."""
        names, count = list(self.nodes()), self.middle_fronts
        parts = [
            names[first : first + self.replicas] for first in range(0, len(names), self.replicas)
        ]
        groups = [parts[number::count] for number in range(count)]
        return {
            f"middle-{number}": tuple(name for part in own for name in part)
            for number, own in enumerate(groups)
            if own
        }
