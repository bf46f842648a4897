"""Calls many shards at the same time; the failure of one does not fail the others.

A failure is returned beside the results, so replies and failures are gathered in one place, as in
Vespa's dispatch. Knows awaitables and errors; does not know gRPC.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from winnow.domain.coverage import ShardStatus
from winnow.quoting import many
from winnow.stateless.answer.failures import LATE, Failure, incomplete_error
from winnow.stateless.policy.waiting import AdaptiveTimeout, Wait

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Gathered(Generic[Result]):
    """Results and failures by shard; every called shard is in exactly one of the two."""

    results: dict[int, Result]
    failures: dict[int, Failure]


async def scatter(
    calls: Mapping[int, Coroutine[Any, Any, Result]],
    timeout: AdaptiveTimeout,
    allows_partial: bool = True,
    is_empty: Callable[[Result], bool] = lambda _: False,
    awaited_write: Callable[[int], str] = lambda _: "",
) -> Gathered[Result]:
    """Awaits one call per shard until `timeout` expires, then cancels the late calls.

    Each call runs in a task. Cancelling the scatter cancels every call.

    Args:
        calls: calls by shard.
        timeout: timeout for as many shards as there are calls.
        allows_partial: whether to continue when a shard fails.
        is_empty: whether a result has nothing to answer with, so further shards are awaited.
        awaited_write: describes the write that a shard waited for, for the reason of a late shard;
            empty if it waited for none.

    Raises:
        WinnowError: a shard failed, and `allows_partial` is false.

    """
    gathered: Gathered[Result] = Gathered({}, {})
    shards = {asyncio.create_task(call): shard for shard, call in calls.items()}
    pending = set(shards)
    completed, empty_results = CompletionOrder(pending), 0
    try:
        while pending:
            wait = timeout.next(len(gathered.results), len(gathered.failures), empty_results)
            done = await completed.next(wait.seconds)
            pending.difference_update(done)
            for task in done:
                shard = shards[task]
                _add(gathered, shard, task)
                empty_results += shard in gathered.results and is_empty(gathered.results[shard])
            if not done:
                late = _late_failure(wait, len(gathered.results))
                gathered.failures.update({shards[task]: late for task in pending})
                break
            if gathered.failures and not allows_partial:
                break
    finally:
        for task in shards:
            task.cancel()
    _add_awaited_writes(gathered, awaited_write)
    if gathered.failures and not allows_partial:
        raise incomplete_error(gathered.failures)
    return gathered


class CompletionOrder(Generic[Result]):
    """Returns tasks in the order in which they end, each once.

    The cost of a wait does not depend on the number of running tasks. `asyncio.wait` visits every
    running task at each call, which takes half a second with a thousand shards.
    """

    def __init__(self, tasks: Collection[asyncio.Task[Result]]) -> None:
        self._running = set(tasks)
        self._ended: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        for task in tasks:
            task.add_done_callback(self._ended.put_nowait)

    async def next(self, seconds: float | None) -> list[asyncio.Task[Result]]:
        """Waits for the next task to end; returns all tasks that ended since the last call.

        The list is empty if none ends within `seconds`.
        """
        if (done := self._drain()) or not self._running:
            return done
        try:
            async with asyncio.timeout(seconds):
                first = await self._ended.get()
        except TimeoutError:
            # the callback of a task that ended just now has not run yet
            return self._remove([task for task in self._running if task.done()])
        return self._remove([first]) + self._drain()

    def _drain(self) -> list[asyncio.Task[Result]]:
        return self._remove([self._ended.get_nowait() for _ in range(self._ended.qsize())])

    def _remove(self, tasks: list[asyncio.Task[Any]]) -> list[asyncio.Task[Result]]:
        """Removes tasks from the running ones; returns those that were not removed before."""
        own = [task for task in tasks if task in self._running]
        self._running.difference_update(own)
        return own


def _add(gathered: Gathered[Result], shard: int, task: asyncio.Task[Result]) -> None:
    if task.cancelled():
        gathered.failures[shard] = Failure(ShardStatus.UNAVAILABLE, "the call was cancelled")
    elif (error := task.exception()) is not None:
        gathered.failures[shard] = Failure.of(shard, error)
    else:
        gathered.results[shard] = task.result()


def _late_failure(wait: Wait, answered: int) -> Failure:
    if wait.adaptive:
        reason = f"given up once {many(answered, 'shard')} had answered, as the question allows"
        return Failure(ShardStatus.ADAPTIVE, reason)
    return LATE


def _add_awaited_writes(gathered: Gathered[Any], awaited_write: Callable[[int], str]) -> None:
    """Adds to the reasons of late shards the writes that they waited for."""
    for shard, failure in gathered.failures.items():
        if failure.status is ShardStatus.TIMEOUT and (write := awaited_write(shard)):
            gathered.failures[shard] = replace(failure, reason=f"{write} ({failure.reason})")
