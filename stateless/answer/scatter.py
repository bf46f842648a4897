"""Calls many shards at the same time; the failure of one does not fail the others.

A failure is returned beside the results, so replies and failures are gathered in one place, as in
Vespa's dispatch. Knows awaitables and errors; does not know gRPC.
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
    *,
    joint: Mapping[Shards, SendJoint[Result]] = NO_CALLS,
) -> Gathered[Result]:
    """Awaits the result of each shard until `timeout` expires, then cancels the late calls.

    Each call runs in a task. Cancelling the scatter cancels every call.

    Args:
        calls: calls by shard.
        timeout: timeout for as many shards as are called.
        allows_partial: whether to continue when a shard fails.
        is_empty: whether a result has nothing to answer with, so further shards are awaited.
        awaited_write: describes the write that a shard waited for, for the reason of a late shard;
            empty if it waited for none.
        joint: calls for several shards, by their shards; no shard is in two calls.

    Raises:
        WinnowError: a shard failed, and `allows_partial` is false.

    """
    gathered: Gathered[Result] = Gathered({}, {})
    running = _Running[Result](gathered, is_empty)
    try:
        for shard, call in calls.items():
            running.begin((shard,), _alone(shard, call))
        for shards, send in joint.items():
            running.begin(shards, send())
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


async def _alone(shard: int, call: Coroutine[Any, Any, Result]) -> PartialResult[Result]:
    return PartialResult({shard: await call})


class _Running(Generic[Result]):
    """The running calls of one scatter, each with its shards."""

    def __init__(self, gathered: Gathered[Result], is_empty: Callable[[Result], bool]) -> None:
        self._gathered, self._is_empty = gathered, is_empty
        self.shards: dict[asyncio.Task[PartialResult[Result]], Shards] = {}
        self._completed: CompletionOrder[PartialResult[Result]] = CompletionOrder()
        self.empty_results = 0

    def begin(self, shards: Shards, call: Coroutine[Any, Any, PartialResult[Result]]) -> None:
        """Begins a call for these shards."""
        task = asyncio.create_task(call)
        self.shards[task] = shards
        self._completed.add(task)

    async def collect(self, seconds: float) -> bool:
        """Collects the calls that end next; returns whether one ended within `seconds`.

        The calls in which their shards continue are begun.
        """
        done = await self._completed.next(seconds)
        for task in done:
            self._add(self.shards.pop(task), task)
        return bool(done)

    def pending(self) -> Iterator[int]:
        """Yields the shards whose calls run."""
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
                self.begin(some, send())


class CompletionOrder(Generic[Result]):
    """Returns tasks in the order in which they end, each once.

    The cost of a wait does not depend on the number of running tasks. `asyncio.wait` visits every
    running task at each call, which takes half a second with a thousand shards.
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
