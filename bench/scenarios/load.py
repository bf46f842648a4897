"""Sends load to a front node, in closed loops or at a fixed rate, and records every question."""

import asyncio
import contextlib
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from bench.scenarios.measurements import OK, QuestionOutcome, answered_outcome, failed_outcome
from winnow.client.messages import AnswerClient
from winnow.errors import WinnowError
from winnow.v1 import answer_pb2

_PAUSE = 0.1
"""Seconds that a client of a closed loop waits after a failed question."""


class Load:
    """Asks questions, and records the outcome of each in the phase in which it ended."""

    def __init__(
        self, ask: Callable[[str], Awaitable[QuestionOutcome]], questions: Sequence[str]
    ) -> None:
        """`ask` sends a question and returns its outcome; `Load` sets the two times of it."""
        self._ask = ask
        self._questions = itertools.cycle(questions)
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self.phase = ""
        self.outcomes: dict[str, list[QuestionOutcome]] = defaultdict(list)

    @property
    def now(self) -> float:
        """Seconds since the start of the load, as in `QuestionOutcome.due`."""
        return self._clock() - self._began

    async def ask(self, due: float | None = None) -> QuestionOutcome:
        """Asks the next question, which was due at `due`; None means now."""
        due = self.now if due is None else due
        reply = await self._ask(next(self._questions))
        outcome = replace(reply, due=due, seconds=self.now - due)
        self.outcomes[self.phase].append(outcome)
        return outcome

    async def run_closed_loop(self, clients: int, seconds: float) -> float:
        """Runs `clients` clients, each of which asks one question after the other.

        Returns:
            complete answers per second

        """
        started, outcomes = self.now, self.outcomes[self.phase]
        earlier_outcomes = len(outcomes)

        async def client() -> None:
            while self.now < started + seconds:
                if (await self.ask()).status != OK:
                    await asyncio.sleep(_PAUSE)

        await asyncio.gather(*(client() for _ in range(clients)))
        return sum(outcome.complete for outcome in outcomes[earlier_outcomes:]) / (
            self.now - started
        )

    @contextlib.asynccontextmanager
    async def ask_at_rate(self, rate: float) -> AsyncIterator[None]:
        """Asks `rate` questions per second within the context.

        The exit of the context waits for questions in flight.
        """
        running: set[asyncio.Task[QuestionOutcome]] = set()

        async def send_on_schedule() -> None:
            started = self.now
            for number in itertools.count():
                due = started + number / rate
                await asyncio.sleep(max(due - self.now, 0.0))
                task = asyncio.create_task(self.ask(due))
                running.add(task)
                task.add_done_callback(running.discard)

        sender = asyncio.create_task(send_on_schedule())
        try:
            yield
        finally:
            sender.cancel()
            await asyncio.gather(sender, *running, return_exceptions=True)


class FrontAsker:
    """Asks a front node a question, returns its outcome, and keeps the last reply."""

    def __init__(self, client: AnswerClient, deadline: float, passages: int | None = None) -> None:
        """`deadline` is in seconds. `passages` is the number to read; None for the default."""
        self._client, self._deadline, self._passages = client, deadline, passages
        self.reply = answer_pb2.AnswerResponse()

    async def __call__(self, question: str) -> QuestionOutcome:
        """Asks a question and returns its outcome, whose two times are 0."""
        request = answer_pb2.AnswerRequest(
            question=question, passages_to_read=self._passages, max_loss=0, fresh=True
        )
        try:
            self.reply = await self._client.ask(request, self._deadline)
        except WinnowError as error:
            return failed_outcome(str(error).split(":", 1)[0])
        return answered_outcome(self.reply)
