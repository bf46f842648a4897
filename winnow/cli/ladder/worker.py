"""Worker processes that classify texts at the same time, each in one thread.

A worker loads the model of a job and reports that it is ready. All workers begin when all are
ready, and reply with their times.
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

from winnow.cli.ladder.model import Model
from winnow.cli.ladder.steps import LadderStep
from winnow.cli.ladder.texts import Ids
from winnow.errors import UnavailableError, WinnowError

_WARM_UP = 3
"""Texts before the timed ones: the first runs at a length are slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJob:
    """The texts of a worker at one step of one round."""

    step: LadderStep
    texts: Sequence[Ids]
    """One for each request."""
    seconds: float
    """No request begins after this time."""
    entries: int = 0
    """Encodings that the cache holds, where the step has one."""
    known: Sequence[Ids] = ()
    """Texts in the cache, the next to be evicted first."""


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """The times of a worker's requests."""

    latencies: Sequence[float]
    """Seconds of each request."""
    seconds: float
    """Seconds of all requests together."""
    hits: int
    """Requests whose text was in the cache."""


class WorkerPool:
    """Workers that have started."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections

    def run(self, jobs: Sequence[WorkerJob]) -> list[WorkerResult]:
        """Gives each worker a job; they begin once all are ready.

        Raises UnavailableError if a worker ended, and WinnowError if a model cannot be loaded.
        """
        for connection, job in zip(self._connections, jobs, strict=True):
            connection.send(job)
        for connection in self._connections:
            _received(connection)
        for connection in self._connections:
            connection.send(True)
        return [_received(connection) for connection in self._connections]


@contextlib.contextmanager
def worker_pool(workers: int, place: Path) -> Iterator[WorkerPool]:
    """Starts workers that find their models at `place`; leaves no process behind."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(workers)]
    processes = [
        context.Process(target=_work, args=(theirs, place), daemon=True) for _, theirs in pipes
    ]
    try:
        for process, (_, theirs) in zip(processes, pipes, strict=True):
            process.start()
            theirs.close()  # so that reading from a worker that has ended fails
        yield WorkerPool([ours for ours, _ in pipes])
    finally:
        for process, (ours, _) in zip(processes, pipes, strict=True):
            ours.close()
            if process.pid is not None:
                process.terminate()
                process.join()


def _received(connection: Connection) -> Any:
    try:
        received = connection.recv()
    except (EOFError, ConnectionError) as error:
        raise UnavailableError(
            "a worker ended: was its memory enough? Fewer workers need less"
        ) from error
    if isinstance(received, WinnowError):
        raise received
    return received


def _work(connection: Connection, place: Path) -> None:
    """Runs jobs until the other end closes; sends an error instead of a result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent terminates this process
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            job = connection.recv()
            try:
                model = _prepared(place, job)
                connection.send(True)
                connection.recv()
                connection.send(_timed(model, job))
            except WinnowError as error:
                connection.send(error)


def _prepared(place: Path, job: WorkerJob) -> Model:
    """The model of a job, warm, with its cache filled."""
    model = Model(place, job.step, job.entries)
    for ids in itertools.islice(job.texts, _WARM_UP):
        model.predict(ids)
    for ids in job.known:
        model.states(ids)
    model.hits = 0
    return model


def _timed(model: Model, job: WorkerJob) -> WorkerResult:
    """Runs requests one after the other; at least one."""
    latencies: list[float] = []
    started = now = time.perf_counter()
    for ids in job.texts:
        model.predict(ids)
        before, now = now, time.perf_counter()
        latencies.append(now - before)
        if now - started > job.seconds:
            break
    return WorkerResult(latencies, now - started, model.hits)
