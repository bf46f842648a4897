"""What is known of the cluster now, as those want it who let questions in and keep answers.

Knows the view that is served and what its nodes said last; asks no node anything.
"""

from collections.abc import Callable, Iterator

from stateless.cluster.discovery import Discovery
from stateless.cluster.edition import Edition, edition_of
from stateless.cluster.formation import Formation
from stateless.policy.capacity import seconds_per_read
from stateless.words.source import WordSource


class Known:
    """The cluster that is served, by what was heard of its nodes."""

    def __init__(
        self,
        formation: Formation,
        nodes: Discovery,
        lately: float,
        words: Callable[[], object] = lambda: (),
    ) -> None:
        """`lately`: seconds for which a node is believed to be unchanged; `words` names the counts
        that questions are weighed by.
        """
        self._formation, self._nodes, self._lately = formation, nodes, lately
        self._words = words

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
        view, cluster = self._formation.view, self._formation.cluster
        infos = view.expected()
        if infos is None or cluster is None or cluster.infos != infos:
            return Edition(None)
        silences = {shard: map(self._nodes.silence, own) for shard, own in view.replicas.items()}
        return edition_of(infos, silences, self._lately, cluster.latest(), self._words())

    def notice(self, shard: int, sequence: int, log_id: str = "") -> None:
        """A write to a shard was acknowledged: no answer from before it is given any more.

        `log_id` names its log, if that is known. To be called before its caller is told. Nodes are
        looked at closely for a while then.
        """
        self._nodes.asked()
        if self._formation.cluster is not None:
            self._formation.cluster.notice(shard, sequence, log_id)

    def counting(self, shard: int) -> list[WordSource]:
        """The replicas of a shard that count words, the one with most writes first."""
        addresses = self._formation.view.replicas.get(shard, ())
        nodes = [node for each in addresses if (node := self._nodes.nodes.get(each)) is not None]
        nodes.sort(key=lambda node: node.info.sequence if node.info else 0, reverse=True)
        return [node.words for node in nodes if node.words is not None]

    def _addresses(self) -> Iterator[str]:
        for own in self._formation.view.replicas.values():
            yield from own
