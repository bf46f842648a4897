"""Two ways of offering load, both bounded in time.

Closed: so many clients, each asking again as soon as it has its answer. Open: questions arrive at
a fixed rate whether or not earlier ones are answered, so that waiting shows (no coordinated
omission: latency counts from the moment a question was due).
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from winnow.cli.failures import failures
from winnow.errors import WinnowError

Ask = Callable[[str], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class LoadResult:
    """One measurement. Latencies in milliseconds, of answered questions only."""

    kind: str
    offered: float
    """Clients of a closed loop, questions a second of an open one."""
    seconds: float
    answered: int
    errors: dict[str, int]
    """Failed questions by status."""
    said: dict[str, str]
    """What the first of each status said."""
    per_second: float
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class _Tally:
    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.errors: list[str] = []

    async def ask(self, ask: Ask, question: str, due: float) -> None:
        try:
            await ask(question)
        except WinnowError as error:
            self.errors.append(str(error))
        else:
            self.latencies.append((time.perf_counter() - due) * 1e3)

    def load(self, kind: str, offered: float, seconds: float) -> LoadResult:
        marks = [50.0, 90.0, 95.0, 99.0, 100.0]
        values = np.percentile(self.latencies, marks).tolist() if self.latencies else [0.0] * 5
        answered, why = len(self.latencies), failures(self.errors)
        return LoadResult(
            kind, offered, seconds, answered, why.errors, why.said, answered / seconds, *values
        )


async def closed_loop(
    ask: Ask, questions: Sequence[str], clients: int, seconds: float
) -> LoadResult:
    """`clients` clients, each with one question at a time, for `seconds`."""
    tally, source = _Tally(), itertools.cycle(questions)
    started = time.perf_counter()

    async def client() -> None:
        while time.perf_counter() - started < seconds:
            await tally.ask(ask, next(source), time.perf_counter())

    await asyncio.gather(*(client() for _ in range(clients)))
    return tally.load("closed", clients, time.perf_counter() - started)


async def open_loop(ask: Ask, questions: Sequence[str], rate: float, seconds: float) -> LoadResult:
    """`rate` questions a second for `seconds`, evenly spaced; one at least."""
    tally, source = _Tally(), itertools.cycle(questions)
    started = time.perf_counter()
    asked: list[asyncio.Task[None]] = []
    for number in range(max(int(rate * seconds), 1)):
        due = started + number / rate
        await asyncio.sleep(max(due - time.perf_counter(), 0.0))
        asked.append(asyncio.create_task(tally.ask(ask, next(source), due)))
    await asyncio.gather(*asked)
    return tally.load("open", rate, time.perf_counter() - started)
