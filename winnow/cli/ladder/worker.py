"""Runs worker processes that classify texts in parallel, each in one thread.

A worker loads the model of its job, and reports that it is ready. When all workers are ready, they
start together. Each replies with its times.
"""

import contextlib
import itertools
import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from winnow.cli.ladder.model import LadderStepModel
from winnow.cli.ladder.steps import LadderStep
from winnow.cli.ladder.texts import Ids
from winnow.errors import UnavailableError, WinnowError

_WARM_UP = 3
"""Number of texts to run before the timed ones, because first runs are slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJob:
    """The work of a worker at one step of one round."""

    step: LadderStep
    texts: Sequence[Ids]
    """One text for each request."""
    seconds: float
    """Seconds after which no further request begins."""
    entries: int = 0
    """Capacity of the cache, in encodings; 0 for no cache."""
    cached: Sequence[Ids] = ()
    """Texts in the cache at the start, in the order of eviction."""


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """The times of a worker's requests."""

    latencies: Sequence[float]
    """Seconds of each request."""
    seconds: float
    """Elapsed seconds of all requests."""
    hits: int
    """Requests whose text was in the cache."""


class WorkerPool:
    """Sends jobs to worker processes that have started."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections

    def run(self, jobs: Sequence[WorkerJob]) -> list[WorkerResult]:
        """Sends each worker a job, and returns the results. All workers start together.

        Raises UnavailableError if a worker process ended, and WinnowError if a model cannot be
        loaded.
        """
        for connection, job in zip(self._connections, jobs, strict=True):
            connection.send(job)
        for connection in self._connections:
            _receive(connection)
        for connection in self._connections:
            connection.send(True)
        return [_receive(connection) for connection in self._connections]


@contextlib.contextmanager
def worker_pool(workers: int, directory: Path) -> Iterator[WorkerPool]:
    """Starts workers that find their models at `directory`; ends them after the block."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(workers)]
    processes = [
        context.Process(target=_run_worker, args=(theirs, directory), daemon=True)
        for _, theirs in pipes
    ]
    try:
        for process, (_, theirs) in zip(processes, pipes, strict=True):
            process.start()
            theirs.close()  # otherwise reading from an ended worker would block
        yield WorkerPool([ours for ours, _ in pipes])
    finally:
        for process, (ours, _) in zip(processes, pipes, strict=True):
            ours.close()
            if process.pid is not None:
                process.terminate()
                process.join()


def _receive(connection: Connection) -> Any:
    try:
        received = connection.recv()
    except (EOFError, ConnectionError) as error:
        raise UnavailableError(
            "a worker ended, perhaps for lack of memory: use fewer --workers"
        ) from error
    if isinstance(received, WinnowError):
        raise received
    return received


def _run_worker(connection: Connection, directory: Path) -> None:
    """Runs jobs until the connection closes. If a job fails, the reply is its error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent terminates this process
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            job = connection.recv()
            try:
                model = _prepare(directory, job)
                connection.send(True)
                connection.recv()
                connection.send(_time_requests(model, job))
            except WinnowError as error:
                connection.send(error)


def _prepare(directory: Path, job: WorkerJob) -> LadderStepModel:
    """Loads and warms up the model of a job, and fills its cache."""
    model = LadderStepModel(directory, job.step, job.entries)
    for ids in itertools.islice(job.texts, _WARM_UP):
        model.predict(ids)
    for ids in job.cached:
        model.states(ids)
    model.hits = 0
    return model


def _time_requests(model: LadderStepModel, job: WorkerJob) -> WorkerResult:
    """Runs and times the requests one after the other until the time is over, at least one."""
    latencies: list[float] = []
    started = now = time.perf_counter()
    for ids in job.texts:
        model.predict(ids)
        previous, now = now, time.perf_counter()
        latencies.append(now - previous)
        if now - started > job.seconds:
            break
    return WorkerResult(latencies, now - started, model.hits)
