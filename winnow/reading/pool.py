"""The reader threads of a process, and separate threads for brief work.

A process has one pool of reader threads. A request uses a limited number of them. Clients take
turns after each passage, no matter how many passages of a client wait. Brief work, such as
retrieval, has separate threads, so it never waits for reading.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from prometheus_client import Counter, Gauge

from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError, StoppedError
from winnow.inference.fair_threads import FairThreads
from winnow.inference.niceness import lower_priority
from winnow.inference.stop_signal import StopSignal
from winnow.reading.job import ReadJob

Item = TypeVar("Item")
Result = TypeVar("Result")


class PoolMetrics(Protocol):
    """The metrics that a pool updates."""

    threads: Gauge
    """Number of reader threads."""
    threads_busy: Gauge
    """Number of busy reader threads."""
    reads_stopped: Counter
    """Items that were not done because the deadline passed or the caller cancelled."""
    runs_ended: Counter
    """Items that were stopped before their end."""


@dataclass(frozen=True, slots=True)
class PoolResult(Generic[Result]):
    """Results of a job in the order of its items."""

    results: list[Result]
    queue_seconds: float
    """Seconds until the first thread was free."""
    unfinished: int = 0
    """Number of items without a result, because time ran out."""


class ReaderPool:
    """A pool of threads of fixed size, which clients share fairly item by item."""

    def __init__(self, threads: int, per_request: int, metrics: PoolMetrics, nice: int = 0) -> None:
        """`nice` is the niceness of the reader threads, relative to all other threads.

        With 0, a busy node is late with quick work, such as refusals and health checks.
        """
        self._readers = FairThreads(threads, "reader", partial(lower_priority, nice))
        self._brief = FairThreads(threads, "brief")
        self._threads, self._per_request, self._metrics = threads, per_request, metrics
        self._assigned_threads = 0
        metrics.threads.set(threads)

    @property
    def idle_threads(self) -> int:
        """Number of threads that a new request would get without waiting."""
        return max(min(self._per_request, self._threads - self._assigned_threads), 0)

    async def map(
        self,
        work: Callable[[Item, StopSignal], Result],
        items: Sequence[Item],
        deadline: Deadline,
        on_item_done: Callable[[], None] | None = None,
        client: str = "",
    ) -> PoolResult[Result]:
        """Applies `work` to every item until the deadline; returns the results so far.

        The deadline or a cancellation stops the items in progress. `on_item_done`, if given, is
        called on the event loop after every finished item. Clients, identified by `client`, share
        the threads.

        Raises:
            DeadlineExceededError: time ran out before any item was done.

        """
        if not items:
            return PoolResult([], 0.0)
        threads = min(self._per_request, len(items))
        job = ReadJob(
            work,
            items,
            deadline,
            threads=threads,
            on_item_done=on_item_done,
            item_context=self._track_item,
        )
        self._assigned_threads += threads
        try:
            queue_seconds = await _run_job(job, self._readers, client, threads)
        finally:
            results = job.close()
            self._assigned_threads -= threads
            self._metrics.reads_stopped.inc(len(items) - len(results))
        if not results:
            raise DeadlineExceededError(
                f"the deadline passed before any of {len(items)} passages was read"
            )
        return PoolResult(results, queue_seconds, len(items) - len(results))

    async def call(
        self, work: Callable[[StopSignal], Result], deadline: Deadline, client: str = ""
    ) -> PoolResult[Result]:
        """Runs brief work in separate threads, so that it does not wait for reading.

        The only result is in `results`.

        Raises:
            DeadlineExceededError: time ran out before the work was done.

        """
        job = ReadJob(lambda _item, stop: work(stop), [None], deadline)
        try:
            queue_seconds = await _run_job(job, self._brief, client)
        finally:
            results = job.close()
        if not results:
            raise DeadlineExceededError("the deadline passed before the hits were found")
        return PoolResult(results, queue_seconds)

    async def call_each(
        self,
        work: Callable[[Item, StopSignal], Result],
        items: Sequence[Item],
        deadline: Deadline,
        client: str = "",
    ) -> PoolResult[Result]:
        """Runs brief work for every item, in as many threads as `map` uses.

        Items that are not done by the deadline have no result, and raise no error.
        """
        if not items:
            return PoolResult([], 0.0)
        threads = min(self._per_request, len(items))
        job = ReadJob(work, items, deadline, threads=threads)
        try:
            queue_seconds = await _run_job(job, self._brief, client, threads)
        finally:
            results = job.close()
        return PoolResult(results, queue_seconds, len(items) - len(results))

    def close(self) -> None:
        """Waits for the threads to end."""
        self._readers.close()
        self._brief.close()

    @contextmanager
    def _track_item(self) -> Iterator[None]:
        with self._metrics.threads_busy.track_inprogress():
            try:
                yield
            except StoppedError:
                self._metrics.runs_ended.inc()
                raise


async def _run_job(
    job: ReadJob[Any, Any], pool: FairThreads, client: str, threads: int = 1
) -> float:
    """Runs a job until its deadline; returns the seconds until the first thread was free."""
    submitted_at = time.perf_counter()
    for _ in range(threads):
        pool.add(client, job.process_next)
    try:
        await job.wait()
    finally:
        pool.remove(client, job.process_next)  # calls that have not begun are cancelled
    return (job.started_at or submitted_at) - submitted_at
