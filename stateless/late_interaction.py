"""Decides which questions are ranked by late interaction."""

from dataclasses import replace

from winnow.domain.question import EncodedQuestion
from winnow.stateless.cluster.cluster import Cluster


class LateInteraction:
    """Keeps the token vectors of a question if all passages of the index have token vectors."""

    def __init__(self, cluster: Cluster, fingerprint: str) -> None:
        """`fingerprint` is that of the bundle's token vectors; empty without late interaction."""
        self._cluster, self._fingerprint = cluster, fingerprint

    def apply(self, question: EncodedQuestion) -> EncodedQuestion:
        """Returns the question, without its token vectors if they cannot be used.

        Shards rank alike only if all of them use late interaction.
        """
        if question.tokens is None or self._cluster.token_vectors == self._fingerprint:
            return question
        return replace(question, tokens=None)
