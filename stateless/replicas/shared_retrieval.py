"""Combines retrievals from several shards of one content node in one call.

Hedges and retries are combined in this way: each shard chooses its replica separately, but many
shards do so in the same iteration of the event loop. All retrievals of a question from one node
that start in one iteration are sent as one call in the next iteration.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.searcher import MAX_CALL_SHARDS, RequestedShard, Retrieved

MAX_CALL_HITS = 10_000
"""Maximum number of hits that one call may return. With the longest ids they fit into the largest
message.
"""


SendRetrieval = Callable[
    [EncodedQuestion, RetrievalDepth, Sequence[RequestedShard], Deadline],
    Awaitable[Sequence[Retrieved | Exception]],
]
"""Retrieves from shards in one call; returns a result or error for each, in the same order."""


@dataclass(eq=False, slots=True)
class _Group:
    """The retrievals that are sent in one call."""

    question: EncodedQuestion
    depth: RetrievalDepth
    deadline: Deadline
    shards: list[RequestedShard] = field(default_factory=list, kw_only=True)
    results: "list[asyncio.Future[Retrieved]]" = field(default_factory=list, kw_only=True)

    def fits(self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline) -> bool:
        """Whether a retrieval differs from this group only in its shard."""
        same = question is self.question and depth == self.depth and deadline == self.deadline
        shards = len(self.shards) + 1
        return same and shards <= MAX_CALL_SHARDS and shards * depth.passages <= MAX_CALL_HITS


class SharedRetrieval:
    """Collects retrievals from one node, and sends the retrievals of one question together."""

    def __init__(self, send: SendRetrieval) -> None:
        self._send = send
        self._groups: list[_Group] = []
        """The groups that are sent in the next iteration of the event loop."""
        self._running: set[asyncio.Task[None]] = set()

    async def retrieve(
        self, shard: int, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Retrieves from a shard. Raises the error of the shard, or of the call."""
        group = self._group(question, replace(depth, after=0), deadline)
        result: asyncio.Future[Retrieved] = asyncio.get_running_loop().create_future()
        group.shards.append(RequestedShard(shard, depth.after))
        group.results.append(result)
        return await result

    def _group(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> _Group:
        for group in self._groups:
            if group.fits(question, depth, deadline):
                return group
        group = _Group(question, depth, deadline)
        self._groups.append(group)
        asyncio.get_running_loop().call_soon(self._start, group)
        return group

    def _start(self, group: _Group) -> None:
        self._groups.remove(group)
        task = asyncio.create_task(self._run(group))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        for result in group.results:
            result.add_done_callback(lambda _: self._cancel_unneeded(group, task))

    def _cancel_unneeded(self, group: _Group, task: "asyncio.Task[None]") -> None:
        """Cancels the call of a group if all its retrievals were cancelled."""
        if all(result.cancelled() for result in group.results):
            task.cancel()

    async def _run(self, group: _Group) -> None:
        try:
            results: Sequence[Retrieved | BaseException] = await self._send(
                group.question, group.depth, group.shards, group.deadline
            )
        except asyncio.CancelledError:
            for waiting in group.results:
                waiting.cancel()
            raise
        except Exception as error:  # noqa: BLE001 (raised to every caller)
            results = [error] * len(group.results)
        for waiting, result in zip(group.results, results, strict=True):
            if waiting.done():
                continue
            if isinstance(result, BaseException):
                waiting.set_exception(result)
            else:
                waiting.set_result(result)
