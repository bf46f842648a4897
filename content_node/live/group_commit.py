"""Group commit: writes that arrive while a transaction is being stored share the next one.

Lives on the event loop. One thread does all the work, so that no two pieces of work overlap.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from winnow.deadline import Deadline
from winnow.domain.write import Write, Written
from winnow.errors import DeadlineExceededError, OverloadedError, UnavailableError
from winnow.quoting import are

Commit = Callable[[Sequence[Sequence[Write]]], Sequence[list[Written] | Exception]]
"""Stores the valid writes of several callers in one transaction: all of them or none.

Returns for each caller the outcomes, or the error for writes that are not valid.
"""
Result = TypeVar("Result")
AT_ONCE = 1_000
"""Writes that share a transaction: it takes some tenths of a second, and others wait for it."""
WAITING = 20_000
"""Writes that may wait: some seconds' worth."""
_AGAIN_AFTER = 0.5
"""Seconds until there is room again."""


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """Writes of a caller that waits."""

    writes: Sequence[Write]
    deadline: Deadline
    done: "asyncio.Future[list[Written]]"


class GroupCommit:
    """One thread that stores writes, and the callers that wait for it."""

    def __init__(
        self, commit: Commit, show: Callable[[], None], at_once: int = AT_ONCE, most: int = WAITING
    ) -> None:
        """`commit` is called in the thread.

        `show` makes what is stored visible, on the event loop, before callers get their results. It
        is called after every piece of work, even one that failed, and mostly has nothing to do.
        """
        self._commit, self._show = commit, show
        self._at_once, self._most = at_once, most
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._calls: deque[_Call] = deque()
        self._tasks: set[asyncio.Task[object]] = set()
        self._storing = self._closed = False
        self.waiting = 0
        """Writes that wait or are being stored."""

    async def write(self, writes: Sequence[Write], deadline: Deadline) -> list[Written]:
        """Returns when writes are durable. Cancelling the call takes no write back.

        Raises:
            OverloadedError: too many writes wait.
            UnavailableError: the node is leaving.
            Exception: as `commit` says.

        """
        if self._closed:
            raise UnavailableError("the node is leaving, and takes no more writes")
        if self.waiting + len(writes) > max(self._most, len(writes)):
            raise OverloadedError(
                f"{are(self.waiting, 'write')} waiting to be stored, at most {self._most}; try "
                "again",
                _AGAIN_AFTER,
            )
        call = _Call(writes, deadline, asyncio.get_running_loop().create_future())
        self._calls.append(call)
        self.waiting += len(writes)
        if not self._storing:
            self._storing = True
            self._begin(self._store())
        return await call.done

    async def alone(self, work: Callable[[], Result]) -> Result:
        """Does work in the thread, between two transactions, and shows what it did.

        The work is done to its end, even if the call is cancelled.
        """
        if self._closed:
            raise UnavailableError("the node is leaving")
        return await asyncio.shield(self._begin(self._run(work)))

    async def close(self, last: Callable[[], None]) -> None:
        """Takes no more writes, stores those that wait, and does the `last` work of the thread."""
        self._closed = True
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._run(last)
        self._thread.shutdown()

    def _begin(self, work: "asyncio._CoroutineLike[Result]") -> "asyncio.Task[Result]":
        task = asyncio.create_task(work)
        self._tasks.add(task)  # or the task would be collected
        task.add_done_callback(self._tasks.discard)
        return task

    async def _store(self) -> None:
        """Stores until no caller waits."""
        try:
            while calls := self._next():
                await self._store_some(calls)
        finally:
            self._storing = False

    def _next(self) -> list[_Call]:
        """The calls whose writes share the next transaction; at least one if any waits."""
        calls: list[_Call] = []
        writes = 0
        while self._calls and (not calls or writes + len(self._calls[0].writes) <= self._at_once):
            call = self._calls.popleft()
            if call.done.done() or call.deadline.expired():
                self._end(call, DeadlineExceededError("the deadline passed before it was stored"))
                continue
            writes += len(call.writes)
            calls.append(call)
        return calls

    async def _store_some(self, calls: Sequence[_Call]) -> None:
        results: Sequence[list[Written] | Exception]
        try:
            results = await self._run(partial(self._commit, [call.writes for call in calls]))
        except asyncio.CancelledError:
            for call in calls:
                self._end(call, UnavailableError("the node ended before it was known"))
            raise
        except Exception as error:  # noqa: BLE001 (callers get the error)
            results = [error] * len(calls)
        for call, result in zip(calls, results, strict=True):
            self._end(call, result)

    def _end(self, call: _Call, result: list[Written] | Exception) -> None:
        self.waiting -= len(call.writes)
        if call.done.done():
            return
        if isinstance(result, Exception):
            call.done.set_exception(result)
        else:
            call.done.set_result(result)

    async def _run(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._show()
