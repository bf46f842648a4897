"""Passages that are being read before it is known whether they are needed.

Knows tasks, one for each such passage; which ones those are is the business of `policy/ahead.py`.
Whatever becomes of them harms nobody: what failed is read again once it is needed, and what is not
needed is cancelled.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Self

from stateless.answer.choose import Ranked
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.errors import WinnowError
from winnow.searcher import Read

Send = Callable[[int, Sequence[Hit]], Coroutine[Any, Any, Read]]


class ReadingAhead:
    """What one question reads ahead; a context manager that leaves nothing running."""

    def __init__(self, send: Send, passages: Ranked) -> None:
        """`send` has a shard read some of its passages; `passages` are those to read ahead, which
        begins with the first that is needed, right behind it.
        """
        self._send, self._waiting = send, passages
        self._tasks: dict[tuple[int, str], asyncio.Task[Read]] = {}
        """By shard and passage."""

    async def read(self, shard: int, hits: Sequence[Hit]) -> Read:
        """Reads passages of a shard, or waits for them where that has begun already.

        Raises:
            WinnowError: they cannot be read, also not when asked for again.

        """
        begun = {hit: self._tasks.pop((shard, hit.passage_id), None) for hit in hits}
        fresh = [hit for hit, task in begun.items() if task is None]
        calls = [self._wait(shard, hit, task) for hit, task in begun.items() if task]
        tasks = [asyncio.create_task(each) for each in calls]
        tasks += [asyncio.create_task(self._send(shard, fresh))] if fresh else []
        self._begin()
        parts = await _all(tasks)
        readings = tuple(reading for part in parts for reading in part.readings)
        return Read(readings, sum((part.timings for part in parts), ShardTimings()))

    @property
    def in_vain(self) -> int:
        """Passages that were read so far and not asked for."""
        ended = [task for task in self._tasks.values() if task.done() and not task.cancelled()]
        return sum(task.exception() is None for task in ended)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._tasks.values():
            task.cancel()

    def _begin(self) -> None:
        for shard, hit in self._waiting:
            task = asyncio.create_task(self._send(shard, [hit]))
            task.add_done_callback(_look)
            self._tasks[shard, hit.passage_id] = task
        self._waiting = []

    async def _wait(self, shard: int, hit: Hit, task: asyncio.Task[Read]) -> Read:
        try:
            return await task
        except WinnowError:
            return await self._send(shard, [hit])


async def _all(tasks: Sequence[asyncio.Task[Read]]) -> list[Read]:
    """What all of them gave; the first failure ends the others."""
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _look(task: asyncio.Task[Read]) -> None:
    """Takes note of a failure, or asyncio says that nobody did."""
    if not task.cancelled():
        task.exception()
