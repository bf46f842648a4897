"""The interface of a shard in this process: a `Searcher` whose retrievals run in any thread."""

from collections.abc import Callable
from typing import Protocol

from winnow.candidates.limits import CandidateCosts, CandidateLimits
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.inference.stop_signal import StopSignal
from winnow.searcher import Retrieved, Searcher


class UnrankedCandidates(CandidateCosts, Protocol):
    """The candidates of a shard for a question, before they are ranked."""

    def rank(self, limits: CandidateLimits, stop: StopSignal) -> Retrieved:
        """Ranks the candidates within `limits`, in any thread.

        The result lacks the queue time and the idle readers. Raises the errors of `retrieve`.
        """


Retrieval = Callable[[StopSignal], UnrankedCandidates]
"""Finds the candidates of a shard, in any thread."""


class LocalShard(Searcher, Protocol):
    """A `Searcher` in this process, with retrievals that run in any thread."""

    async def prepare(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieval:
        """Waits for the write `depth.after`; returns a retrieval from the newest view.

        Raises the errors of `retrieve`.
        """
