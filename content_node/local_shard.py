"""The interface of a shard in this process: a `Searcher` whose retrievals run in any thread."""

from collections.abc import Callable
from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.inference.stop import Stop
from winnow.searcher import Retrieved, Searcher

Retrieval = Callable[[Stop], Retrieved]
"""Retrieves from a shard, in any thread. The result lacks the queue time and the idle readers."""


class LocalShard(Searcher, Protocol):
    """A shard in this process."""

    async def prepare(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieval:
        """Returns a retrieval from the newest view, once it has the write `depth.after`.

        Errors are those of `retrieve`.
        """
