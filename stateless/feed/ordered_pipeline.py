"""The messages of a stream in hand: begun as they come, done one after the other.

A later message may be encoded while an earlier one is stored, but is never stored before it: of two
passages with one id the later one counts.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

Message = TypeVar("Message")
Done = TypeVar("Done")
Turn = Callable[[], Awaitable[None]]
"""Waits until the message before is done; raises what went wrong with it."""


class OrderedPipeline(Generic[Message, Done]):
    """What is done for each message of one stream."""

    def __init__(
        self,
        work: Callable[[Message, Turn], Coroutine[Any, Any, Done]],
        done: Callable[[Done], None],
        most: int,
    ) -> None:
        """`work` is begun for up to `most` messages at once; `done` is told of each in order."""
        self._work, self._done, self._most = work, done, most
        self._tasks: deque[asyncio.Task[Done]] = deque()
        self._reading: asyncio.Task[Message | None] | None = None

    async def run(self, messages: AsyncIterator[Message]) -> None:
        """Takes messages until the stream ends. None is read while `most` are in hand.

        What goes wrong with one, or with reading, is raised at once, and the others are given up.
        """
        more = True
        try:
            while more or self._tasks:
                if more and self._reading is None and len(self._tasks) < self._most:
                    self._reading = asyncio.create_task(_next(messages))
                await asyncio.wait(self._awaited(), return_when=asyncio.FIRST_COMPLETED)
                self._collect()
                if self._reading is not None and self._reading.done():
                    message, self._reading = self._reading.result(), None
                    more = message is not None
                    if message is not None:
                        self._take(message)
        finally:
            await _end(self._awaited())

    def _awaited(self) -> list[asyncio.Task[Any]]:
        return [*self._tasks, *([self._reading] if self._reading else [])]

    def _take(self, message: Message) -> None:
        before = self._tasks[-1] if self._tasks else None
        self._tasks.append(asyncio.create_task(self._work(message, partial(_after, before))))

    def _collect(self) -> None:
        """Tells of what is done; raises what went wrong, wherever it stands."""
        for task in self._tasks:
            if task.done():
                task.result()
        while self._tasks and self._tasks[0].done():
            self._done(self._tasks.popleft().result())


async def _next(messages: AsyncIterator[Message]) -> Message | None:
    return await anext(messages, None)


async def _after(before: "asyncio.Task[Any] | None") -> None:
    if before is not None:
        await asyncio.wait([before])  # cancels nothing where this one is cancelled
        before.result()


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancels what still runs, and waits for it; what else went wrong was told before."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
