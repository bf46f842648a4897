"""The interface of a shard in this process: a `Searcher` whose retrievals run in any thread."""

from collections.abc import Callable
from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.inference.stop_signal import StopSignal
from winnow.searcher import Retrieved, Searcher

Retrieval = Callable[[StopSignal], Retrieved]
"""Retrieves from a shard, in any thread. The result lacks the queue time and the idle readers."""


class LocalShard(Searcher, Protocol):
    """A `Searcher` in this process, with retrievals that run in any thread."""

    async def prepare(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieval:
        """Waits for the write `depth.after`; returns a retrieval from the newest view.

        Raises the errors of `retrieve`.
        """
