"""Polls a content node once for several indexes of a front.

Each index still decides when its node is to be polled. A poll for one index includes the other
indexes that are to be polled soon, and all of them get its result at the same moment. So a front
polls a node about as often for a hundred indexes as for one.

This module knows indexes and results. It does not know how a node is called.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import structlog

from winnow.deadline import Clock, Deadline
from winnow.domain.shard import NodeReport
from winnow.errors import WinnowError
from winnow.searcher import MAX_POLLED_INDEXES
from winnow.stateless.cluster.node import ReceiveReport

_log = structlog.get_logger("stateless.replicas.shared_polls")
Index = TypeVar("Index")
Fetch = Callable[[Sequence[Index], Deadline], Awaitable[Sequence[NodeReport | WinnowError]]]
"""Calls the node for several indexes; returns the report or the error of each, in their order.

Raises a WinnowError if the whole call fails.
"""


class SharedPolls(Generic[Index]):
    """The polls of one node, which the indexes of a front share."""

    def __init__(self, fetch: Fetch[Index], clock: Clock = time.monotonic) -> None:
        """`clock` is that of `Discovery`."""
        self._fetch, self._clock = fetch, clock
        self._members: list[IndexPolls[Index]] = []
        self._running: dict[IndexPolls[Index], asyncio.Task[None]] = {}
        """The running poll of each index that waits for one."""

    def join(self, index: Index) -> "IndexPolls[Index]":
        """Adds an index."""
        member = IndexPolls(self, index)
        self._members.append(member)
        return member

    def leave(self, member: "IndexPolls[Index]") -> None:
        """Removes an index, which gets no further results. The last one ends the running polls."""
        self._members.remove(member)
        if not self._members:
            for task in self._running.values():
                task.cancel()

    @property
    def is_unused(self) -> bool:
        """Whether all indexes have left."""
        return not self._members

    async def poll(self, member: "IndexPolls[Index]", deadline: Deadline) -> None:
        """Polls for an index, or waits for a running poll that includes it."""
        if (task := self._running.get(member)) is None:
            others = (e for e in self._members if e is not member and e not in self._running)
            asked = [member, *(each for each in others if each.is_due_soon())]
            task = self._start(asked[:MAX_POLLED_INDEXES], deadline)
        # another index may wait for the same poll
        await asyncio.shield(task)

    def _start(
        self, asked: Sequence["IndexPolls[Index]"], deadline: Deadline
    ) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._poll(asked, deadline))
        self._running.update(dict.fromkeys(asked, task))

        def on_end(_: "asyncio.Task[None]") -> None:
            for each in asked:
                del self._running[each]

        task.add_done_callback(on_end)
        return task

    async def _poll(self, asked: Sequence["IndexPolls[Index]"], deadline: Deadline) -> None:
        started = self._clock()
        results = await self._results([each.index for each in asked], deadline)
        for each, result in zip(asked, results, strict=True):
            if each in self._members:
                try:
                    each.receive(result, started)
                except Exception:  # noqa: BLE001 (the other indexes must get their results)
                    _log.exception("the result of a poll could not be recorded")

    async def _results(
        self, indexes: Sequence[Index], deadline: Deadline
    ) -> Sequence[NodeReport | WinnowError]:
        try:
            results = await self._fetch(indexes, deadline)
            if len(results) == len(indexes):
                return results
            failure = WinnowError(
                f"invalid reply to a poll: it has {len(results)} reports, but the call listed "
                f"{len(indexes)} indexes"
            )
        except WinnowError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 (polling must continue)
            _log.exception("poll failed unexpectedly")
            failure = WinnowError(f"invalid reply to a poll: {error}")
        return [failure] * len(indexes)


class IndexPolls(Generic[Index]):
    """The `NodePolls` of one index."""

    def __init__(self, shared: SharedPolls[Index], index: Index) -> None:
        self._shared, self.index = shared, index
        self.receive: ReceiveReport = lambda _result, _started: None
        """Receives the result of each poll that includes this index."""
        self.is_due_soon: Callable[[], bool] = lambda: False
        """Whether a poll for another index should include this one."""

    def follow(self, receive: ReceiveReport, is_due_soon: Callable[[], bool]) -> None:
        """Lets polls for other indexes include this one."""
        self.receive, self.is_due_soon = receive, is_due_soon

    async def poll(self, deadline: Deadline) -> None:
        """Polls the node, or waits for a running poll."""
        await self._shared.poll(self, deadline)

    def leave(self) -> None:
        """Ends the membership."""
        self._shared.leave(self)
