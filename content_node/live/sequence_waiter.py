"""Lets questions wait until a write is served. Used on the event loop."""

import asyncio
import heapq
import itertools

from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError
from winnow.telemetry.tracing.span import span


class SequenceWaiter:
    """Knows the number of the last served write; wakes questions that wait for a later one."""

    def __init__(self, sequence: int = 0) -> None:
        self.sequence = sequence
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        """A heap of (sequence, order of arrival, future)."""
        self._arrivals = itertools.count()

    def advance(self, sequence: int) -> None:
        """Records that the write `sequence` is served; wakes the questions that waited for that."""
        self.sequence = max(self.sequence, sequence)
        while self._waiters and self._waiters[0][0] <= self.sequence:
            future = heapq.heappop(self._waiters)[-1]
            if not future.done():
                future.set_result(None)

    async def wait(self, sequence: int, deadline: Deadline) -> None:
        """Returns when a write is served; raises DeadlineExceededError after the deadline."""
        if sequence <= self.sequence:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (sequence, next(self._arrivals), future)
        heapq.heappush(self._waiters, waiter)
        try:
            with span("await write", {"winnow.sequence": sequence}):
                async with asyncio.timeout(max(deadline.left(), 0)):
                    await future
        except TimeoutError as error:
            raise DeadlineExceededError(
                f"write {sequence} was not served in time, the last served one is {self.sequence}"
            ) from error
        finally:
            if (not future.done() or future.cancelled()) and waiter in self._waiters:
                self._waiters.remove(waiter)
                heapq.heapify(self._waiters)
