"""The last known state of the cluster, for the admission of questions and the cache of answers.

It is computed from the served view and the last replies of nodes. No node is called.
"""

from collections.abc import Callable
from operator import is_

from winnow.shard_writer import WordSource
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.index_version import IndexVersion, index_version_of
from winnow.stateless.cluster.membership import ClusterView
from winnow.stateless.cluster.node import Node
from winnow.stateless.policy.reading import seconds_per_read

_RECHECK_SHARE = 0.05
"""Share of `max_silence` after which an unconfirmed version is computed again."""


class ClusterSnapshot:
    """The state of the served cluster, as its nodes last reported it."""

    def __init__(
        self,
        builder: ClusterBuilder,
        nodes: Discovery,
        max_silence: float,
        words: Callable[[], object] = lambda: (),
    ) -> None:
        """`max_silence`: seconds after its last reply during which a node is assumed to be
        unchanged. `words` returns the name of the word counts that weight questions.
        """
        self._builder, self._nodes, self._max_silence = builder, nodes, max_silence
        self._words = words
        self._seconds_per_read: float | None = None
        self._replies: list[object] = []
        """The replies from which `_seconds_per_read` was computed."""
        self._index_version = IndexVersion(None)
        self._inputs: tuple[object, ...] = ()
        """The values from which `_index_version` was computed."""
        self._valid_until = float("-inf")
        """When `_index_version` must be computed again even if `_inputs` are unchanged."""

    def seconds_per_read(self) -> float | None:
        """Seconds per passage of all nodes together; None if no node has reported its pace.

        Every question needs this value, so it is computed again only after a node has replied.
        """
        replicas, nodes = self._builder.view.replicas, self._nodes.nodes
        replies: list[object] = [replicas, *(node.report for node in nodes.values())]
        if len(replies) != len(self._replies) or not all(map(is_, replies, self._replies)):
            self._replies = replies
            self._seconds_per_read = seconds_per_read(
                [
                    [_seconds_per_read(nodes.get(address), shard) for address in own]
                    for shard, own in replicas.items()
                ]
            )
        return self._seconds_per_read

    def others_reads(self) -> int:
        """Number of passages that the nodes are reading for other fronts."""
        replicas = self._builder.view.replicas.values()
        addresses = {address for own in replicas for address in own}
        return sum(self._nodes.others_reads(address) for address in addresses)

    def index_version(self) -> IndexVersion:
        """The version of the served index.

        Every question needs the version, so it is computed again only after a change, or when a
        silent node may have changed.
        """
        view, cluster = self._builder.view, self._builder.cluster
        if cluster is None:
            return IndexVersion(None)
        inputs = (
            *(view, cluster.shard_infos, cluster.sequences_version),
            *(len(self._nodes.nodes), self._words()),
        )
        if not _are_same(inputs, self._inputs) or self._nodes.now() > self._valid_until:
            self._index_version, self._inputs = self._compute_version(view, cluster), inputs
        return self._index_version

    def _compute_version(self, view: ClusterView, cluster: Cluster) -> IndexVersion:
        infos = view.expected()
        if infos is None or cluster.shard_infos != infos:
            return IndexVersion(None)
        nodes = self._nodes
        silences = {
            shard: [nodes.silence(each) for each in own] for shard, own in view.replicas.items()
        }
        version = index_version_of(
            infos, silences, self._max_silence, cluster.latest_sequences(), self._words()
        )
        valid_seconds = self._max_silence * _RECHECK_SHARE
        if version.is_confirmed:
            valid_seconds = self._max_silence - max(min(own) for own in silences.values())
        self._valid_until = nodes.now() + valid_seconds
        return version

    def record_write(self, shard: int, sequence: int, log_id: str = "") -> None:
        """Records an acknowledged write to a shard. Cached answers without the write become stale.

        `log_id` is the name of the log of the write; empty if it is not known. Call this method
        before the caller of the write gets its reply. For a while nodes are polled more often.
        """
        self._nodes.record_request()
        if self._builder.cluster is not None:
            self._builder.cluster.record_write(shard, sequence, log_id)

    def word_sources(self, shard: int) -> list[WordSource]:
        """Returns the word sources of the replicas of a shard, the one with most writes first."""
        addresses = self._builder.view.replicas.get(shard, ())
        nodes = [node for each in addresses if (node := self._nodes.nodes.get(each)) is not None]
        nodes.sort(key=lambda node: _sequence(node, shard), reverse=True)
        return [words for node in nodes if (words := node.words(shard)) is not None]


def _seconds_per_read(node: Node | None, shard: int) -> float:
    info = node.info(shard) if node is not None else None
    return info.seconds_per_read if info is not None else 0.0


def _sequence(node: Node, shard: int) -> int:
    info = node.info(shard)
    return info.sequence if info is not None else 0


def _are_same(inputs: tuple[object, ...], before: tuple[object, ...]) -> bool:
    """Whether the inputs are unchanged.

    Views and infos are compared by identity, because each change creates a new object.
    """
    if not before:
        return False
    view, infos, *rest = inputs
    return view is before[0] and infos is before[1] and rest == list(before[2:])
