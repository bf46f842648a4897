"""What is known of the cluster at a moment, for admission of questions and the cache of answers.

Knows the view that is served and the last replies of its nodes; asks no node.
"""

from collections.abc import Callable, Iterator

from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.index_version import IndexVersion, index_version_of
from winnow.stateless.cluster.membership import ClusterView
from winnow.stateless.policy.reading import seconds_per_read
from winnow.stateless.words.source import WordSource

_UNSURE = 0.05
"""Share of `lately` after which the silence of nodes is checked again."""


class ClusterSnapshot:
    """The cluster that is served, by the last replies of its nodes."""

    def __init__(
        self,
        builder: ClusterBuilder,
        nodes: Discovery,
        lately: float,
        words: Callable[[], object] = lambda: (),
    ) -> None:
        """`lately`: seconds for which a node is believed to be unchanged; `words` names the counts
        of words that questions are weighted by.
        """
        self._builder, self._nodes, self._lately = builder, nodes, lately
        self._words = words
        self._index_version = IndexVersion(None)
        self._made_of: tuple[object, ...] = ()
        self._holds_until = float("-inf")

    def seconds_per_read(self) -> float | None:
        """Seconds per passage of all nodes together; None if no node has reported its pace."""
        shards = self._builder.view.replicas.values()
        return seconds_per_read(
            [[self._nodes.seconds_per_read(address) for address in own] for own in shards]
        )

    def others_reads(self) -> int:
        """Passages that the nodes have in hand for other fronts."""
        return sum(self._nodes.others_reads(address) for address in self._addresses())

    def index_version(self) -> IndexVersion:
        """The version of the index. Every question asks for it, so it is built again only after a
        change that it depends on, or when the silence of nodes matters.
        """
        view, cluster = self._builder.view, self._builder.cluster
        if cluster is None:
            return IndexVersion(None)
        made_of = view, cluster.infos, cluster.version, len(self._nodes.nodes), self._words()
        if not _same(made_of, self._made_of) or self._nodes.now() > self._holds_until:
            self._index_version, self._made_of = self._current(view, cluster), made_of
        return self._index_version

    def _current(self, view: ClusterView, cluster: Cluster) -> IndexVersion:
        infos = view.expected()
        if infos is None or cluster.infos != infos:
            return IndexVersion(None)
        nodes = self._nodes
        silences = {
            shard: [nodes.silence(each) for each in own] for shard, own in view.replicas.items()
        }
        found = index_version_of(infos, silences, self._lately, cluster.latest(), self._words())
        silence = max(min(own) for own in silences.values()) if found.sure else 0.0
        holds = self._lately - silence if found.sure else self._lately * _UNSURE
        self._holds_until = nodes.now() + holds
        return found

    def notice(self, shard: int, sequence: int, log_id: str = "") -> None:
        """Records an acknowledged write to a shard: no answer from before it is given any more.

        `log_id` names its log, if that is known. To be called before the writer is told. Nodes are
        polled more often for a while then.
        """
        self._nodes.asked()
        if self._builder.cluster is not None:
            self._builder.cluster.notice(shard, sequence, log_id)

    def counting(self, shard: int) -> list[WordSource]:
        """The word counts of the replicas of a shard, of the one with most writes first."""
        addresses = self._builder.view.replicas.get(shard, ())
        nodes = [node for each in addresses if (node := self._nodes.nodes.get(each)) is not None]
        nodes.sort(key=lambda node: node.info.sequence if node.info else 0, reverse=True)
        return [node.words for node in nodes if node.words is not None]

    def _addresses(self) -> Iterator[str]:
        for own in self._builder.view.replicas.values():
            yield from own


def _same(made_of: tuple[object, ...], before: tuple[object, ...]) -> bool:
    """Whether nothing was replaced: views and infos are new objects when nodes say new things."""
    if not before:
        return False
    view, infos, *rest = made_of
    return view is before[0] and infos is before[1] and rest == list(before[2:])
