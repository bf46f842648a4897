"""Calls many shards at the same time. The failure of one shard does not fail the others.

Failures are returned beside the results, so both are gathered in one place, as in Vespa's dispatch.
This module knows awaitables and errors. It does not know gRPC.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from winnow.domain.coverage import ShardStatus
from winnow.quoting import many
from winnow.stateless.answer.failures import LATE, Failure, incomplete_error
from winnow.stateless.policy.waiting import AdaptiveTimeout, Wait
from winnow.stateless.replicas.partial import PartialResult, SendJoint, Shards

Result = TypeVar("Result")
NO_CALLS: Mapping[Shards, SendJoint[Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ScatterResult(Generic[Result]):
    """Results and failures by shard. Every called shard is in exactly one of the two."""

    results: dict[int, Result]
    failures: dict[int, Failure]


async def scatter(
    calls: Mapping[int, Coroutine[Any, Any, Result]],
    timeout: AdaptiveTimeout,
    allows_partial: bool = True,
    is_empty: Callable[[Result], bool] = lambda _: False,
    awaited_write: Callable[[int], str] = lambda _: "",
    *,
    joint: Mapping[Shards, SendJoint[Result]] = NO_CALLS,
) -> ScatterResult[Result]:
    """Awaits the result of each shard until `timeout` expires, then cancels the late calls.

    Each call runs in a task. Cancelling the scatter cancels every call.

    Args:
        calls: calls for one shard, by shard.
        timeout: timeout, created for the number of called shards.
        allows_partial: whether to continue when a shard fails.
        is_empty: whether a result has nothing to answer with, so that more shards are awaited.
        awaited_write: describes the write that a late shard waited for, which is added to the
            reason of its failure; empty if the shard did not wait for a write.
        joint: joint calls, by their shards. No shard is in two calls.

    Raises:
        WinnowError: a shard failed, and `allows_partial` is false.

    """
    gathered: ScatterResult[Result] = ScatterResult({}, {})
    running = _RunningCalls[Result](gathered, is_empty)
    try:
        for shard, call in calls.items():
            running.start_call((shard,), _call_one_shard(shard, call))
        for shards, send in joint.items():
            running.start_call(shards, send())
        while running.shards:
            answered, failed = len(gathered.results), len(gathered.failures)
            wait = timeout.next_wait(answered, failed, running.empty_results)
            if not await running.collect(wait.seconds):
                late = _late_failure(wait, answered)
                gathered.failures.update(dict.fromkeys(running.pending(), late))
                break
            if gathered.failures and not allows_partial:
                break
    finally:
        running.cancel()
    _add_awaited_writes(gathered, awaited_write)
    if gathered.failures and not allows_partial:
        raise incomplete_error(gathered.failures)
    return gathered


async def _call_one_shard(shard: int, call: Coroutine[Any, Any, Result]) -> PartialResult[Result]:
    return PartialResult({shard: await call})


class _RunningCalls(Generic[Result]):
    """The running calls of one scatter, each with its shards."""

    def __init__(self, gathered: ScatterResult[Result], is_empty: Callable[[Result], bool]) -> None:
        self._gathered, self._is_empty = gathered, is_empty
        self.shards: dict[asyncio.Task[PartialResult[Result]], Shards] = {}
        """The shards of each running call, by its task."""
        self._completed: CompletionOrder[PartialResult[Result]] = CompletionOrder()
        self.empty_results = 0
        """Number of results that were empty."""

    def start_call(self, shards: Shards, call: Coroutine[Any, Any, PartialResult[Result]]) -> None:
        """Starts a call for these shards."""
        task = asyncio.create_task(call)
        self.shards[task] = shards
        self._completed.add(task)

    async def collect(self, seconds: float) -> bool:
        """Collects the calls that end next; returns whether a call ended within `seconds`.

        If shards of an ended call need further calls, starts these.
        """
        done = await self._completed.next(seconds)
        for task in done:
            self._add(self.shards.pop(task), task)
        return bool(done)

    def pending(self) -> Iterator[int]:
        """Yields the shards of the running calls."""
        for shards in self.shards.values():
            yield from shards

    def cancel(self) -> None:
        """Cancels the running calls."""
        for task in self.shards:
            task.cancel()

    def _add(self, shards: Shards, task: asyncio.Task[PartialResult[Result]]) -> None:
        if task.cancelled():
            cancelled = Failure(ShardStatus.UNAVAILABLE, "the call was cancelled")
            self._gathered.failures.update(dict.fromkeys(shards, cancelled))
        elif (error := task.exception()) is not None:
            failures = {shard: Failure.of(shard, error) for shard in shards}
            self._gathered.failures.update(failures)
        else:
            ended = task.result()
            self._gathered.results.update(ended.results)
            self.empty_results += sum(map(self._is_empty, ended.results.values()))
            for some, send in ended.further.items():
                self.start_call(some, send())


class CompletionOrder(Generic[Result]):
    """Returns tasks in the order in which they end, each task once.

    The cost of a wait does not depend on the number of running tasks. `asyncio.wait` visits every
    running task at each call: with a thousand shards these calls take half a second in total.
    """

    def __init__(self, tasks: Iterable[asyncio.Task[Result]] = ()) -> None:
        self._running: set[asyncio.Task[Result]] = set()
        self._ended: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        for task in tasks:
            self.add(task)

    def add(self, task: asyncio.Task[Result]) -> None:
        """Adds a task."""
        self._running.add(task)
        task.add_done_callback(self._ended.put_nowait)

    async def next(self, seconds: float | None) -> list[asyncio.Task[Result]]:
        """Waits for the next task to end; returns all tasks that ended since the last call.

        The list is empty if none ends within `seconds`.
        """
        if (done := self._drain_completed()) or not self._running:
            return done
        try:
            async with asyncio.timeout(seconds):
                first = await self._ended.get()
        except TimeoutError:
            # a task may have ended just now, before its callback has run
            return self._take_running([task for task in self._running if task.done()])
        return self._take_running([first]) + self._drain_completed()

    def _drain_completed(self) -> list[asyncio.Task[Result]]:
        return self._take_running([self._ended.get_nowait() for _ in range(self._ended.qsize())])

    def _take_running(self, tasks: list[asyncio.Task[Any]]) -> list[asyncio.Task[Result]]:
        """Removes tasks from the running tasks; returns the tasks that were still among them."""
        own = [task for task in tasks if task in self._running]
        self._running.difference_update(own)
        return own


def _late_failure(wait: Wait, answered: int) -> Failure:
    if wait.adaptive:
        reason = f"given up after {many(answered, 'shard')} had answered, as the question allows"
        return Failure(ShardStatus.ADAPTIVE, reason)
    return LATE


def _add_awaited_writes(gathered: ScatterResult[Any], awaited_write: Callable[[int], str]) -> None:
    """Adds the write that each late shard waited for to the reason of its failure."""
    for shard, failure in gathered.failures.items():
        if failure.status is ShardStatus.TIMEOUT and (write := awaited_write(shard)):
            gathered.failures[shard] = replace(failure, reason=f"{write} ({failure.reason})")
