"""What is known of the cluster now, as those want it who let questions in and keep answers.

Knows the view that is served and what its nodes said last; asks no node anything.
"""

from collections.abc import Iterator

from stateless.cluster.discovery import Discovery
from stateless.cluster.edition import Edition, edition_of
from stateless.cluster.formation import Formation
from stateless.policy.capacity import seconds_per_read


class Known:
    """The cluster that is served, by what was heard of its nodes."""

    def __init__(self, formation: Formation, nodes: Discovery, lately: float) -> None:
        """`lately`: seconds for which a node is believed to be unchanged."""
        self._formation, self._nodes, self._lately = formation, nodes, lately

    def seconds_per_read(self) -> float | None:
        """Seconds per passage of all nodes together; None if no node has told its pace."""
        shards = self._formation.view.replicas.values()
        return seconds_per_read(
            [[self._nodes.seconds_per_read(address) for address in own] for own in shards]
        )

    def others_reads(self) -> int:
        """Passages that the nodes have in hand for other fronts."""
        return sum(self._nodes.others_reads(address) for address in self._addresses())

    def edition(self) -> Edition:
        """Of the index."""
        view = self._formation.view
        if (infos := view.expected()) is None:
            return Edition(None)
        silences = {shard: map(self._nodes.silence, own) for shard, own in view.replicas.items()}
        return edition_of(infos, silences, self._lately)

    def _addresses(self) -> Iterator[str]:
        for own in self._formation.view.replicas.values():
            yield from own
