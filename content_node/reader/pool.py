"""The reader threads of a node, and separate threads for brief work.

One sized pool serves the whole node; each request takes up to a few of its threads. Clients take
turns passage by passage, for any number of waiting passages. Brief work has its own threads, so it
never waits for reading. Knows jobs, not what they do.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from winnow.content_node.metrics import NodeMetrics
from winnow.content_node.reader.job import ReadJob
from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError, StoppedError
from winnow.inference.fair_threads import FairThreads
from winnow.inference.niceness import give_way
from winnow.inference.stop import Stop

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class PoolResult(Generic[Result]):
    """Results in the order of their items, and the time they took."""

    results: list[Result]
    queued: float
    """Seconds until the first thread was free."""
    left: int = 0
    """Number of items without a result, because time ran out."""


class ReaderPool:
    """A sized pool of threads, shared fairly among clients by taking one item at a time."""

    def __init__(self, threads: int, per_request: int, metrics: NodeMetrics, nice: int = 0) -> None:
        """`nice` is how far readers give way to the threads that serve and retrieve.

        Without it a busy node is late with quick work, such as refusing calls and health checks.
        """
        self._readers = FairThreads(threads, "reader", partial(give_way, nice))
        self._brief = FairThreads(threads, "brief")
        self._threads, self._per_request, self._metrics = threads, per_request, metrics
        self._taken = 0
        metrics.threads.set(threads)

    @property
    def idle(self) -> int:
        """How many items of one more request would be worked on at once."""
        return max(min(self._per_request, self._threads - self._taken), 0)

    async def map(
        self,
        work: Callable[[Item, Stop], Result],
        items: Sequence[Item],
        deadline: Deadline,
        each: Callable[[], None] = lambda: None,
        client: str = "",
    ) -> PoolResult[Result]:
        """Applies `work` to every item, until the deadline or until it is cancelled.

        Then it returns the results so far and stops the items in hand. `each` is called on the
        event loop after every item that is done. `client` is the caller's key, by which threads are
        shared.

        Raises:
            DeadlineExceededError: time ran out before any item was done.

        """
        if not items:
            return PoolResult([], 0.0)
        threads = min(self._per_request, len(items))
        job = ReadJob(work, items, deadline, threads=threads, each=each, around=self._reading)
        self._taken += threads
        try:
            queued = await _worked(job, self._readers, client, threads)
        finally:
            results = job.close()
            self._taken -= threads
            self._metrics.reads_stopped.inc(len(items) - len(results))
        if not results:
            raise DeadlineExceededError(
                f"the deadline passed before one of {len(items)} passages was read"
            )
        return PoolResult(results, queued, len(items) - len(results))

    async def call(
        self, work: Callable[[Stop], Result], deadline: Deadline, client: str = ""
    ) -> PoolResult[Result]:
        """Runs one brief piece of work ahead of all reading.

        Raises:
            DeadlineExceededError: time ran out before it was done.

        """
        job = ReadJob(lambda _item, stop: work(stop), [None], deadline)
        try:
            queued = await _worked(job, self._brief, client)
        finally:
            results = job.close()
        if not results:
            raise DeadlineExceededError("the deadline passed before it was done")
        return PoolResult(results, queued)

    def close(self) -> None:
        """Waits for the threads to end."""
        self._readers.close()
        self._brief.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._metrics.threads_busy.track_inprogress():
            try:
                yield
            except StoppedError:
                self._metrics.runs_ended.inc()
                raise


async def _worked(
    job: ReadJob[Any, Any], pool: FairThreads, client: str, threads: int = 1
) -> float:
    """Works on a job until its deadline; returns the seconds until the first thread was free."""
    submitted = time.perf_counter()
    for _ in range(threads):
        pool.add(client, job.turn)
    try:
        await job.wait()
    finally:
        pool.remove(client, job.turn)  # threads that have not begun never will
    return (job.started or submitted) - submitted
