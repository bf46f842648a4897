"""A shard in the states that callers can see: loading, served, withdrawn, leaving or failed."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from winnow.content_node.local_shard import LocalShard, Retrieval
from winnow.content_node.transfer.source import TransferSource
from winnow.deadline import Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import ShardInfo
from winnow.errors import LeavingError, NotLoadedError, UnavailableError
from winnow.passage_source import PassageSource
from winnow.searcher import Read, Retrieved
from winnow.shard_writer import WritableShard

Part = TypeVar("Part")
LOADING = "the shard is still loading"


class ServedShard:
    """A `LocalShard` that refuses calls before its shard is loaded and after it failed."""

    def __init__(self, number: int | None = None) -> None:
        self.number = number
        """Number of the shard; None if it is unknown yet."""
        self.index_id = ""
        """Id of the index; empty if it is unknown yet."""
        self._searcher: LocalShard | None = None
        self._writing: WritableShard | None = None
        self._transfer: Callable[[], TransferSource] | None = None
        self.fault = ""
        """Why the shard is not served, which is the error of every call. Empty without a fault."""
        self._is_temporary = False
        self._withdrawal_reason = ""
        self._is_leaving = False

    def serve(self, searcher: LocalShard) -> None:
        """Answers calls by `searcher` from now on."""
        self._searcher = searcher

    def accept_writes(self, writing: WritableShard) -> None:
        """Sends writes to `writing` from now on."""
        self._writing = writing

    def allow_transfer(self, source: Callable[[], TransferSource]) -> None:
        """Lets other nodes copy the shard. `source` is called by each of their requests."""
        self._transfer = source

    @property
    def transfer(self) -> TransferSource:
        """The shard and its files, for nodes that copy them.

        Raises NotLoadedError or UnavailableError if the shard is not served.
        """
        return self._available_part(self._transfer)()

    @property
    def writing(self) -> WritableShard:
        """The writer of the shard, with the description of the shard.

        Raises NotLoadedError or UnavailableError if the shard is not served.
        """
        return self._available_part(self._writing)

    def fail(self, fault: str, *, is_temporary: bool = False) -> None:
        """Makes every call fail with the reason `fault`.

        `is_temporary` means that the node tries to load the shard again, so callers may retry.
        """
        self.fault, self._is_temporary = fault, is_temporary

    def withdraw(self, reason: str) -> None:
        """Makes `info` fail with `reason`, so that fronts stop using the shard.

        All other calls still work. An empty reason ends the withdrawal.
        """
        self._withdrawal_reason = reason

    def start_leaving(self) -> None:
        """Makes `info` report that the node is leaving; all other calls still work."""
        self._is_leaving = True

    @property
    def passages(self) -> PassageSource:
        """The passages of the shard; raises UnavailableError if the shard is not served."""
        return self._available_part(self._searcher).passages

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns the description of the shard."""
        if self._is_leaving:
            raise LeavingError("the node is leaving")
        if self._withdrawal_reason:
            raise NotLoadedError(self._withdrawal_reason)
        return await self._available_part(self._searcher).info(deadline)

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Retrieves the shard's passages that may be among the best of the cluster."""
        return await self._available_part(self._searcher).retrieve(question, depth, deadline)

    async def prepare(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieval:
        """Returns a retrieval that runs in any thread."""
        return await self._available_part(self._searcher).prepare(question, depth, deadline)

    async def read(
        self, question: EncodedQuestion, hits: Sequence[Hit], deadline: Deadline
    ) -> Read:
        """Reads hits of `retrieve`."""
        return await self._available_part(self._searcher).read(question, hits, deadline)

    async def search(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Read:
        """Retrieves and reads this shard's best passages."""
        return await self._available_part(self._searcher).search(question, depth, deadline)

    @property
    def fault_error(self) -> UnavailableError:
        """The error of every call after `fail`."""
        return UnavailableError(self.fault) if self._is_temporary else NotLoadedError(self.fault)

    def _available_part(self, part: Part | None) -> Part:
        """Returns a part of the shard that is set once the shard is loaded."""
        if self.fault:
            raise self.fault_error
        if part is None:
            raise UnavailableError(LOADING)
        return part
