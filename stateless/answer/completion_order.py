"""Tasks as they end: waiting for the next costs the same however many are still running.

`asyncio.wait` looks at every running task each time, which over a thousand shards is half a second.
"""

import asyncio
from collections.abc import Collection
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class CompletionOrder(Generic[Result]):
    """Each task once, in the order in which they end."""

    def __init__(self, tasks: Collection[asyncio.Task[Result]]) -> None:
        self._running = set(tasks)
        self._ended: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        for task in tasks:
            task.add_done_callback(self._ended.put_nowait)

    async def next(self, seconds: float | None) -> list[asyncio.Task[Result]]:
        """Those that ended since, at least one; none if `seconds` pass first."""
        if (done := self._taken()) or not self._running:
            return done
        try:
            async with asyncio.timeout(seconds):
                first = await self._ended.get()
        except TimeoutError:
            # a task that ended in the very moment has not been told of yet
            return self._take([task for task in self._running if task.done()])
        return self._take([first]) + self._taken()

    def _taken(self) -> list[asyncio.Task[Result]]:
        waiting = [self._ended.get_nowait() for _ in range(self._ended.qsize())]
        return self._take(waiting)

    def _take(self, tasks: list[asyncio.Task[Any]]) -> list[asyncio.Task[Result]]:
        own = [task for task in tasks if task in self._running]
        self._running.difference_update(own)
        return own
