"""A shard as its callers see it: loading, served, withdrawn, leaving, or failed."""

from collections.abc import Sequence

from winnow.deadline import Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import ShardInfo
from winnow.errors import LeavingError, NotLoadedError, UnavailableError
from winnow.searcher import Read, Retrieved, Searcher


class ServedShard:
    """A `Searcher` that refuses calls while there is no shard to answer from."""

    def __init__(self) -> None:
        self._searcher: Searcher | None = None
        self._fault = self._withdrawn = ""
        self._leaving = False

    def serve(self, searcher: Searcher) -> None:
        """Sends calls to `searcher`."""
        self._searcher = searcher

    def fail(self, fault: str) -> None:
        """Refuses every call with the reason why there is no shard."""
        self._fault = fault

    def withdraw(self, reason: str) -> None:
        """Has `info` report a reason not to use the shard; other calls continue. An empty reason
        takes it back.
        """
        self._withdrawn = reason

    def leave(self) -> None:
        """Has `info` report that the shard leaves; other calls continue."""
        self._leaving = True

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns which shard this is."""
        if self._leaving:
            raise LeavingError("the node is leaving")
        if self._withdrawn:
            raise NotLoadedError(self._withdrawn)
        return await self._ready().info(deadline)

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Finds the shard's passages that may be among the best of the whole cluster."""
        return await self._ready().retrieve(question, depth, deadline)

    async def read(
        self,
        question: EncodedQuestion,
        hits: Sequence[Hit],
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Reads passages that `retrieve` named."""
        return await self._ready().read(question, hits, max_answer_tokens, deadline)

    async def search(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Retrieves and reads this shard's best passages."""
        return await self._ready().search(question, depth, max_answer_tokens, deadline)

    def _ready(self) -> Searcher:
        if self._fault:
            raise NotLoadedError(self._fault)
        if self._searcher is None:
            raise UnavailableError("the shard is still loading")
        return self._searcher
