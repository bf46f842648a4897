"""Asks many shards at once, and never fails because one of them does.

A shard's failure is returned as an outcome, so that gathering has one path (as in Vespa's
dispatch). Knows awaitables and errors; knows no gRPC.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from winnow.domain.coverage import ShardStatus
from winnow.quoting import many
from winnow.stateless.answer.failures import LATE, Failure, incomplete
from winnow.stateless.policy.waiting import AdaptiveTimeout, Wait

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Gathered(Generic[Result]):
    """Replies by shard: every shard that was called is in exactly one of the two."""

    results: dict[int, Result]
    failures: dict[int, Failure]


async def scatter(
    calls: Mapping[int, Coroutine[Any, Any, Result]],
    waits: AdaptiveTimeout,
    partial: bool = True,
    empty: Callable[[Result], bool] = lambda _: False,
    why_late: Callable[[int], str] = lambda _: "",
) -> Gathered[Result]:
    """Awaits one call per shard for as long as `waits` says, then cancels the calls that are late.

    Each call runs in a task. Cancelling the scatter cancels every call.

    Args:
        calls: calls by shard.
        waits: timeouts for as many shards as there are calls.
        partial: whether to go on when a shard fails.
        empty: whether a result holds nothing to answer with, so that others are waited for.
        why_late: what a shard waited for, if that is known; part of the reason if it is late.

    Raises:
        WinnowError: a shard failed, and `partial` is false.

    """
    gathered: Gathered[Result] = Gathered({}, {})
    shards = {asyncio.create_task(call): shard for shard, call in calls.items()}
    pending = set(shards)
    ended, found_nothing = CompletionOrder(pending), 0
    try:
        while pending:
            wait = waits.next(len(gathered.results), len(gathered.failures), found_nothing)
            done = await ended.next(wait.seconds)
            pending.difference_update(done)
            for task in done:
                shard = shards[task]
                _add(gathered, shard, task)
                found_nothing += shard in gathered.results and empty(gathered.results[shard])
            if not done:
                late = _given_up(wait, len(gathered.results))
                gathered.failures.update({shards[task]: late for task in pending})
                break
            if gathered.failures and not partial:
                break
    finally:
        for task in shards:
            task.cancel()
    _explain(gathered, why_late)
    if gathered.failures and not partial:
        raise incomplete(gathered.failures)
    return gathered


class CompletionOrder(Generic[Result]):
    """Tasks in the order in which they end, each once.

    Waiting for the next one costs the same however many are still running. `asyncio.wait` looks at
    every running task each time, which over a thousand shards takes half a second.
    """

    def __init__(self, tasks: Collection[asyncio.Task[Result]]) -> None:
        self._running = set(tasks)
        self._ended: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        for task in tasks:
            task.add_done_callback(self._ended.put_nowait)

    async def next(self, seconds: float | None) -> list[asyncio.Task[Result]]:
        """The tasks that ended since, at least one; none if `seconds` pass first."""
        if (done := self._taken()) or not self._running:
            return done
        try:
            async with asyncio.timeout(seconds):
                first = await self._ended.get()
        except TimeoutError:
            # the callback of a task that ended in this moment has not run yet
            return self._take([task for task in self._running if task.done()])
        return self._take([first]) + self._taken()

    def _taken(self) -> list[asyncio.Task[Result]]:
        return self._take([self._ended.get_nowait() for _ in range(self._ended.qsize())])

    def _take(self, tasks: list[asyncio.Task[Any]]) -> list[asyncio.Task[Result]]:
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


def _given_up(wait: Wait, answered: int) -> Failure:
    if wait.adaptive:
        reason = f"given up once {many(answered, 'shard')} had answered, as the question allows"
        return Failure(ShardStatus.ADAPTIVE, reason)
    return LATE


def _explain(gathered: Gathered[Any], why_late: Callable[[int], str]) -> None:
    """Adds to the reasons of late shards what they waited for."""
    for shard, failure in gathered.failures.items():
        if failure.status is ShardStatus.TIMEOUT and (why := why_late(shard)):
            gathered.failures[shard] = replace(failure, reason=f"{why} ({failure.reason})")
