"""Waiting until a write is served. Lives on the event loop."""

import asyncio
import heapq
import itertools

from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError
from winnow.telemetry.tracing.span import span


class SequenceWaiter:
    """The last write that is served, and the questions that wait for a later one."""

    def __init__(self, sequence: int = 0) -> None:
        self.sequence = sequence
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def advance(self, sequence: int) -> None:
        """Wakes the questions that wait for this write or an earlier one: it is served now."""
        self.sequence = max(self.sequence, sequence)
        while self._waiting and self._waiting[0][0] <= self.sequence:
            future = heapq.heappop(self._waiting)[-1]
            if not future.done():
                future.set_result(None)

    async def wait(self, sequence: int, deadline: Deadline) -> None:
        """Returns when a write is served; raises DeadlineExceededError after the deadline."""
        if sequence <= self.sequence:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (sequence, next(self._order), future)
        heapq.heappush(self._waiting, entry)
        try:
            with span("await write", {"winnow.sequence": sequence}):
                async with asyncio.timeout(max(deadline.left(), 0)):
                    await future
        except TimeoutError as error:
            raise DeadlineExceededError(
                f"write {sequence} was not served in time, the last one is {self.sequence}"
            ) from error
        finally:
            if not future.done() or future.cancelled():
                self._forget(entry)

    def _forget(self, entry: tuple[int, int, "asyncio.Future[None]"]) -> None:
        if entry in self._waiting:
            self._waiting.remove(entry)
            heapq.heapify(self._waiting)
