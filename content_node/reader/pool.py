"""The threads that read, and those that go ahead of them.

One sized pool for the whole node; each request takes up to a few of its threads. What is brief has
threads of its own, so that it never waits behind what is long. Knows jobs, not what they do.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from content_node.metrics import NodeMetrics
from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError, StoppedError
from winnow.inference.stop import Stop

Item = TypeVar("Item")
Result = TypeVar("Result")
_MOST_NICE = 19


@dataclass(frozen=True, slots=True)
class Done(Generic[Result]):
    """Results in the order of their items, and what they cost."""

    results: list[Result]
    queued: float
    """Seconds before the first thread was free."""
    left: int = 0
    """Items without a result, because time ran out."""


class _Job(Generic[Item, Result]):
    """The items of one request, shared by the threads that work on it."""

    def __init__(
        self,
        work: Callable[[Item, Stop], Result],
        items: Sequence[Item],
        deadline: Deadline,
        each: Callable[[], object],
    ) -> None:
        self._work, self._items, self._each = work, items, each
        self.deadline = deadline
        self.stop = Stop()
        self._lock = threading.Lock()
        self._next = 0
        self._closed = False
        self._results: dict[int, Result] = {}
        self.started: float | None = None

    def drain(self) -> None:
        """Works until nothing is left, or nobody waits any more.

        Raises:
            StoppedError: nobody waits any more for an item in hand.

        """
        while (place := self._take()) is not None:
            if self._keep(place, self._work(self._items[place], self.stop)):
                self._each()

    def close(self) -> list[Result]:
        """Stops the work; the results so far, in the order of their items. None is added later."""
        self.stop.set()
        with self._lock:
            self._closed = True
            return [self._results[place] for place in sorted(self._results)]

    def _take(self) -> int | None:
        with self._lock:
            self.started = self.started or time.perf_counter()
            if self.stop.is_set or self._next == len(self._items) or self.deadline.expired():
                return None
            self._next += 1
            return self._next - 1

    def _keep(self, place: int, result: Result) -> bool:
        """Counts a result, unless it comes after the end."""
        with self._lock:
            if not self._closed:
                self._results[place] = result
            return not self._closed


class ReaderPool:
    """A sized pool of threads, shared fairly among requests by taking one item at a time."""

    def __init__(self, threads: int, per_request: int, metrics: NodeMetrics, nice: int = 0) -> None:
        """`nice`: how far the readers give way to the threads that serve and retrieve.

        Without that a busy node is late with all that is quick: to refuse, to say that it lives.
        """
        self._readers = ThreadPoolExecutor(
            threads, thread_name_prefix="reader", initializer=partial(give_way, nice)
        )
        self._brief = ThreadPoolExecutor(threads, thread_name_prefix="brief")
        self._threads, self._per_request, self._metrics = threads, per_request, metrics
        self._taken = 0
        metrics.threads.set(threads)

    @property
    def idle(self) -> int:
        """Items of one more request that would be worked on at once."""
        return max(min(self._per_request, self._threads - self._taken), 0)

    async def map(
        self,
        work: Callable[[Item, Stop], Result],
        items: Sequence[Item],
        deadline: Deadline,
        each: Callable[[], None] = lambda: None,
    ) -> Done[Result]:
        """Applies `work` to every item, until the deadline or until it is cancelled.

        Then it returns at once what is done, and the items in hand are told to stop. `each` is
        called on the event loop after every item that is done.

        Raises:
            DeadlineExceededError: time ran out before any item was done.

        """
        if not items:
            return Done([], 0.0)
        loop = asyncio.get_running_loop()
        job = _Job(work, items, deadline, partial(loop.call_soon_threadsafe, each))
        threads = min(self._per_request, len(items))
        self._taken += threads
        try:
            queued = await _worked(job, self._readers, self._read, threads)
        finally:
            results = job.close()
            self._taken -= threads
            self._metrics.reads_stopped.inc(len(items) - len(results))
        if not results:
            raise DeadlineExceededError(
                f"the deadline passed before one of {len(items)} passages was read"
            )
        return Done(results, queued, len(items) - len(results))

    async def call(self, work: Callable[[Stop], Result], deadline: Deadline) -> Done[Result]:
        """Runs one brief piece of work ahead of whatever is being read.

        Raises:
            DeadlineExceededError: time ran out before it was done.

        """
        job = _Job(lambda _item, stop: work(stop), [None], deadline, lambda: None)
        try:
            queued = await _worked(job, self._brief, _Job.drain, 1)
        finally:
            results = job.close()
        if not results:
            raise DeadlineExceededError("the deadline passed before it was done")
        return Done(results, queued)

    def close(self) -> None:
        """Waits for the threads to end."""
        for threads in (self._readers, self._brief):
            threads.shutdown(wait=True, cancel_futures=True)

    def _read(self, job: _Job[Item, Result]) -> None:
        with self._metrics.threads_busy.track_inprogress():
            try:
                job.drain()
            except StoppedError:
                self._metrics.runs_ended.inc()


def give_way(nice: int) -> None:
    """Lowers the priority of the calling thread, where threads have one of their own."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(now + nice, _MOST_NICE))


async def _worked(
    job: _Job[Item, Result],
    executor: ThreadPoolExecutor,
    run: Callable[[_Job[Item, Result]], None],
    threads: int,
) -> float:
    """Has threads work on a job until its deadline; the seconds before the first was free."""
    loop = asyncio.get_running_loop()
    submitted = time.perf_counter()
    working = [loop.run_in_executor(executor, run, job) for _ in range(threads)]
    await _first_failure(working, max(job.deadline.left(), 0))
    return (job.started or submitted) - submitted


async def _first_failure(threads: Sequence[asyncio.Future[None]], seconds: float) -> None:
    """Waits until all have ended, or one has failed, or the time is over; gives up the rest."""
    try:
        ended, _ = await asyncio.wait(threads, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        failures = [error for thread in ended if (error := thread.exception())]
        if failures:
            raise failures[0]
    finally:
        for thread in threads:
            thread.cancel()  # those that have not begun never do
