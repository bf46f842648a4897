"""Passages that are read before it is known whether they are needed.

Knows tasks, one for each such passage; `policy/ahead.py` says which passages. Reading ahead harms
no question: a passage that could not be read ahead is read again when it is needed, and a passage
that is not needed is cancelled.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Self

from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.reading import Reading
from winnow.errors import WinnowError
from winnow.searcher import Read
from winnow.stateless.answer.choose import Ranked

Send = Callable[[int, Sequence[Hit]], Coroutine[Any, Any, Read]]
_Task = asyncio.Task[Read]


class SpeculativeReads:
    """The passages that one question reads; a context manager that leaves nothing running."""

    def __init__(self, send: Send, passages: Ranked) -> None:
        """`send` has a shard read some of its passages. `passages` are those to read ahead; they
        are sent right behind the first passages that are needed.
        """
        self._send, self._waiting = send, passages
        self._ahead: dict[tuple[int, str], _Task] = {}
        """By shard and passage: those that nobody has needed yet."""
        self._needed: dict[int, list[_Task]] = {}
        """By shard: the parts of a read that goes on, or has failed."""

    async def read(self, shard: int, hits: Sequence[Hit]) -> Read:
        """Reads passages of a shard, or waits for those that are being read already.

        Raises:
            WinnowError: a passage cannot be read, also not when asked for again.

        """
        taken = {hit: task for hit in hits if (task := self._take(shard, hit))}
        fresh = [hit for hit in hits if hit not in taken]
        calls = [self._wait(shard, hit, task) for hit, task in taken.items()]
        calls += [self._send(shard, fresh)] if fresh else []
        parts = self._needed[shard] = [asyncio.create_task(call) for call in calls]
        self._begin()
        try:
            read = _together(await asyncio.gather(*parts))
        finally:
            # of the tasks taken, too: one whose part was cancelled early has nobody else to end it
            for task in (*parts, *taken.values()):
                task.cancel()
        del self._needed[shard]
        return read

    def in_hand(self, shard: int, hits: Sequence[Hit]) -> list[Reading]:
        """What was read already of a read that has failed, or was given up."""
        parts: Iterable[_Task | None] = self._needed.pop(shard, ())
        parts = parts or [self._take(shard, hit) for hit in hits]
        return [reading for part in _answered(parts) for reading in part.readings]

    @property
    def in_vain(self) -> int:
        """Passages that were read so far and not needed."""
        return sum(len(part.readings) for part in _answered(self._ahead.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._ahead.values():
            task.cancel()

    def _take(self, shard: int, hit: Hit) -> _Task | None:
        return self._ahead.pop((shard, hit.passage_id), None)

    def _begin(self) -> None:
        for shard, hit in self._waiting:
            task = asyncio.create_task(self._send(shard, [hit]))
            task.add_done_callback(_look)
            self._ahead[shard, hit.passage_id] = task
        self._waiting = []

    async def _wait(self, shard: int, hit: Hit, task: _Task) -> Read:
        try:
            read = await task
        except WinnowError:
            return await self._send(shard, [hit])
        return await self._send(shard, [hit]) if read.unread else read


def _together(parts: Sequence[Read]) -> Read:
    return Read(
        tuple(reading for part in parts for reading in part.readings),
        sum((part.timings for part in parts), ShardTimings()),
        sum(part.unread for part in parts),
    )


def _answered(tasks: Iterable[_Task | None]) -> list[Read]:
    """The results of those that have one."""
    ended = [task for task in tasks if task and task.done() and not task.cancelled()]
    return [task.result() for task in ended if task.exception() is None]


def _look(task: _Task) -> None:
    """Takes note of a failure, or asyncio says that nobody did."""
    if not task.cancelled():
        task.exception()
