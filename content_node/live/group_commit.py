"""Group commit: writes that arrive while a transaction is being stored share the next transaction.

Callers run on the event loop. A single thread runs all commits, so that commits never overlap.
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

Returns for each caller either the outcomes or the error for invalid writes.
"""
Result = TypeVar("Result")
MAX_BATCH_WRITES = 1_000
"""Maximum number of writes of a transaction. A full one takes some tenths of a second, while other
writes wait.
"""
MAX_QUEUED_WRITES = 20_000
"""Maximum number of writes that are queued or being stored: some seconds of work."""
_RETRY_AFTER = 0.5
"""Seconds after which a caller retries when the queue was full."""


@dataclass(frozen=True, slots=True, eq=False)
class _QueuedCall:
    """The queued writes of one call."""

    writes: Sequence[Write]
    deadline: Deadline
    result: "asyncio.Future[list[Written]]"


class GroupCommit:
    """Queues the writes of callers, and stores them in one thread."""

    def __init__(
        self,
        commit: Commit,
        publish: Callable[[], None],
        max_batch: int = MAX_BATCH_WRITES,
        max_queued: int = MAX_QUEUED_WRITES,
    ) -> None:
        """Calls `commit` in the thread, and `publish` on the event loop before callers get results.

        `publish` makes stored writes visible. It is called each time that the thread finishes a
        commit or other work, even after a failure.
        """
        self._commit, self._publish = commit, publish
        self._max_batch, self._max_queued = max_batch, max_queued
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._calls: deque[_QueuedCall] = deque()
        self._tasks: set[asyncio.Task[object]] = set()
        self._storing = self._closed = False
        self.queued_writes = 0
        """Writes that are queued or being stored."""

    async def write(self, writes: Sequence[Write], deadline: Deadline) -> list[Written]:
        """Stores writes; returns when they are durable. Cancelling the call undoes no write.

        Raises:
            OverloadedError: the queue is full.
            UnavailableError: the node is leaving.
            DeadlineExceededError: the deadline passed while the writes were queued.
            Exception: the error that `commit` raised or returned.

        """
        if self._closed:
            raise UnavailableError("the node is leaving, and takes no more writes")
        if self.queued_writes + len(writes) > max(self._max_queued, len(writes)):
            raise OverloadedError(
                f"{are(self.queued_writes, 'write')} waiting to be stored, the limit is "
                f"{self._max_queued}: try again",
                _RETRY_AFTER,
            )
        call = _QueuedCall(writes, deadline, asyncio.get_running_loop().create_future())
        self._calls.append(call)
        self.queued_writes += len(writes)
        if not self._storing:
            self._storing = True
            self._start_task(self._store_queued())
        return await call.result

    async def run_alone(self, work: Callable[[], Result]) -> Result:
        """Runs `work` in the thread, between two transactions, and publishes its changes.

        The work runs to its end, even if the call is cancelled.
        """
        if self._closed:
            raise UnavailableError("the node is leaving")
        task = self._start_task(self._run(work))
        task.add_done_callback(_retrieve_exception)
        return await asyncio.shield(task)

    async def close(self, release: Callable[[], None]) -> None:
        """Takes no more writes, stores the queued ones, and then calls `release` in the thread."""
        self._closed = True
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._run(release)
        self._thread.shutdown()

    def _start_task(self, work: "asyncio._CoroutineLike[Result]") -> "asyncio.Task[Result]":
        task = asyncio.create_task(work)
        self._tasks.add(task)  # without a reference it would be garbage-collected
        task.add_done_callback(self._tasks.discard)
        return task

    async def _store_queued(self) -> None:
        """Stores batches until the queue is empty."""
        try:
            while calls := self._next_batch():
                await self._store_batch(calls)
        finally:
            self._storing = False

    def _next_batch(self) -> list[_QueuedCall]:
        """Takes the calls of the next transaction from the queue: at least one if any is left."""
        calls: list[_QueuedCall] = []
        writes = 0
        while self._calls and (not calls or writes + len(self._calls[0].writes) <= self._max_batch):
            call = self._calls.popleft()
            if call.result.done() or call.deadline.expired():
                error = DeadlineExceededError("the deadline passed before the writes were stored")
                self._finish(call, error)
                continue
            writes += len(call.writes)
            calls.append(call)
        return calls

    async def _store_batch(self, calls: Sequence[_QueuedCall]) -> None:
        results: Sequence[list[Written] | Exception]
        try:
            results = await self._run(partial(self._commit, [call.writes for call in calls]))
        except asyncio.CancelledError:
            error = UnavailableError("the node ended before it knew whether the writes were stored")
            for call in calls:
                self._finish(call, error)
            raise
        except Exception as failure:  # noqa: BLE001 (callers get the error)
            results = [failure] * len(calls)
        for call, result in zip(calls, results, strict=True):
            self._finish(call, result)

    def _finish(self, call: _QueuedCall, result: list[Written] | Exception) -> None:
        self.queued_writes -= len(call.writes)
        if call.result.done():
            return
        if isinstance(result, Exception):
            call.result.set_exception(result)
        else:
            call.result.set_result(result)

    async def _run(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._publish()


def _retrieve_exception(task: "asyncio.Task[object]") -> None:
    """Retrieves the exception of a task whose caller may be gone, or asyncio would log it."""
    if not task.cancelled():
        task.exception()
