"""A process that classifies texts, one after the other, in one thread.

It loads what a job needs, says so, waits for the word, so
that all workers begin at once, and replies with its times.
"""

import contextlib
import itertools
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from winnow.cli.ladder.model import Model
from winnow.cli.ladder.steps import LadderStep
from winnow.cli.ladder.texts import Ids
from winnow.errors import WinnowError

_WARM_UP = 3
"""Texts before those that are timed: first runs at a length are slow."""


@dataclass(frozen=True, slots=True)
class WorkerRound:
    """What a worker does in one round."""

    step: LadderStep
    texts: Sequence[Ids]
    """One a request."""
    seconds: float
    """After which no further request begins."""
    entries: int = 0
    """Encodings that the cache holds, where the step has one."""
    known: Sequence[Ids] = ()
    """Texts that came before, the next to be forgotten first."""


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """What a worker did."""

    latencies: Sequence[float]
    """Seconds of each request."""
    seconds: float
    """Of all requests together."""
    hits: int
    """Requests whose text was encoded before."""


READY = "ready"


def work(connection: Connection, place: Path) -> None:
    """Does jobs; an error is sent instead of a result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever sends the jobs ends this process, too
    with contextlib.suppress(EOFError, ConnectionError):  # nobody is there any more
        _work(connection, place)


def _work(connection: Connection, place: Path) -> None:
    while True:
        job = connection.recv()
        try:
            model = prepared(place, job)
            connection.send(READY)
            connection.recv()
            connection.send(timed(model, job))
        except WinnowError as error:
            connection.send(error)


def prepared(place: Path, job: WorkerRound) -> Model:
    """The model of a job, warm."""
    model = Model(place, job.step, job.entries)
    for ids in itertools.islice(job.texts, _WARM_UP):
        model.predict(ids)
    for ids in job.known:
        model.states(ids)
    model.hits = 0
    return model


def timed(model: Model, job: WorkerRound) -> WorkerResult:
    """Requests, one after the other; at least one."""
    latencies: list[float] = []
    started = now = time.perf_counter()
    for ids in job.texts:
        model.predict(ids)
        before, now = now, time.perf_counter()
        latencies.append(now - before)
        if now - started > job.seconds:
            break
    return WorkerResult(latencies, now - started, model.hits)
