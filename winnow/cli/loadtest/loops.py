"""Offers load in closed and open loops, for a given time.

In a closed loop, each client asks again as soon as it has its answer. In an open loop, questions
are sent at a fixed rate, whether earlier ones are answered or not. The latency of an open loop
counts from the time at which a question was due. So it includes queueing, and has no coordinated
omission.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from winnow.cli.asking import count_failures, percentiles, reported_max_loss, with_question
from winnow.client import Credentials
from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.errors import WinnowError
from winnow.quoting import many
from winnow.telemetry.progress import StageProgress
from winnow.v1 import answer_pb2

Ask = Callable[[str], Awaitable[object]]
"""A function that asks a question. It raises WinnowError if there is no reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """One measurement. Latencies are in milliseconds, of answered questions only."""

    kind: str
    """`closed` or `open`."""
    offered: float
    """Clients of a closed loop, or questions per second of an open loop."""
    seconds: float
    answered: int
    errors: dict[str, int]
    """Failed questions by status."""
    said: dict[str, str]
    """The first error message with each status."""
    per_second: float
    """Answered questions per second."""
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


class _LoopOutcomes:
    """Collects the latencies and errors of the questions of one loop."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.errors: list[str] = []

    async def ask_and_record(self, ask: Ask, question: str, due: float) -> None:
        try:
            await ask(question)
        except WinnowError as error:
            self.errors.append(str(error))
        else:
            self.latencies.append((time.perf_counter() - due) * 1e3)

    def load_result(self, kind: str, offered: float, seconds: float) -> LoadResult:
        p50, p90, p95, p99, maximum = percentiles(self.latencies, 50, 90, 95, 99, 100)
        answered, failures = len(self.latencies), count_failures(self.errors)
        return LoadResult(
            kind=kind,
            offered=offered,
            seconds=seconds,
            answered=answered,
            errors=failures.errors,
            said=failures.messages,
            per_second=answered / seconds,
            p50_ms=p50,
            p90_ms=p90,
            p95_ms=p95,
            p99_ms=p99,
            max_ms=maximum,
        )


async def run_closed_loop(
    ask: Ask, questions: Sequence[str], clients: int, seconds: float
) -> LoadResult:
    """Runs `clients` clients for `seconds`. Each asks one question at a time; at least one."""
    outcomes, source = _LoopOutcomes(), itertools.cycle(questions)
    started = time.perf_counter()

    async def client() -> None:
        while True:
            await outcomes.ask_and_record(ask, next(source), time.perf_counter())
            if time.perf_counter() - started >= seconds:
                break

    await asyncio.gather(*(client() for _ in range(clients)))
    return outcomes.load_result("closed", clients, time.perf_counter() - started)


async def run_open_loop(
    ask: Ask, questions: Sequence[str], rate: float, seconds: float
) -> LoadResult:
    """Asks `rate` questions per second for `seconds`, evenly spaced; at least one."""
    outcomes, source = _LoopOutcomes(), itertools.cycle(questions)
    started = time.perf_counter()
    tasks: list[asyncio.Task[None]] = []
    for number in range(max(int(rate * seconds), 1)):
        due = started + number / rate
        await asyncio.sleep(max(due - time.perf_counter(), 0.0))
        tasks.append(asyncio.create_task(outcomes.ask_and_record(ask, next(source), due)))
    await asyncio.gather(*tasks)
    return outcomes.load_result("open", rate, time.perf_counter() - started)


class LoadRunner:
    """Runs closed and open loops against a front node, with the same options for all questions."""

    def __init__(
        self,
        address: str,
        request: answer_pb2.AnswerRequest,
        *,
        timeout: float,
        warm_up: int,
        credentials: Credentials | None = None,
    ) -> None:
        """`timeout`: seconds for each question; `warm_up`: number of questions before measuring."""
        self._address, self._request, self._timeout = address, request, timeout
        self._warm_up, self._credentials = warm_up, credentials
        requested = request.HasField("max_loss")
        self.max_loss = convert.decimal(request.max_loss) if requested else None
        """Accuracy budget of the last reply; the requested budget before the first reply."""

    async def run(
        self, questions: list[str], clients: list[int], rates: list[float], seconds: float
    ) -> list[LoadResult]:
        """Warms up, then runs a closed loop for each of `clients`, and an open one for each rate.

        Raises UnavailableError if no system serves at the address.
        """
        loads = []
        async with AnswerClient(self._address, credentials=self._credentials) as client:
            await client.expect_serving()
            with StageProgress() as progress:

                async def ask(question: str) -> object:
                    try:
                        request = with_question(self._request, question)
                        reply = await client.ask(request, self._timeout)
                    finally:
                        progress.advance()
                    if (loss := reported_max_loss(reply)) is not None:
                        self.max_loss = loss
                    return reply

                progress.start("warming up", self._warm_up)
                for question in itertools.islice(itertools.cycle(questions), self._warm_up):
                    with contextlib.suppress(WinnowError):  # the loops count failures
                        await ask(question)
                for count in clients:
                    progress.start(f"closed loop, {many(count, 'client')}, {seconds:g} s", None)
                    loads.append(await run_closed_loop(ask, questions, count, seconds))
                for rate in rates:
                    progress.start(f"open loop, {rate:g} questions/s, {seconds:g} s", None)
                    loads.append(await run_open_loop(ask, questions, rate, seconds))
        return loads
