"""Questions that arrive at a fixed rate, whatever becomes of them, as rows by phase."""

import asyncio
import contextlib
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from bench.faults.rows import Row, answered, whole
from winnow.client.messages import AnswerClient
from winnow.errors import WinnowError
from winnow.v1 import answer_pb2


class Load:
    """Asks, and keeps what became of every question under the phase in which it ended."""

    def __init__(self, ask: Callable[[str], Awaitable[Row]], questions: Sequence[str]) -> None:
        """`ask` gives the row of a question, without its times."""
        self._ask = ask
        self._questions = itertools.cycle(questions)
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self.phase = ""
        self.rows: dict[str, list[Row]] = defaultdict(list)

    @property
    def now(self) -> float:
        """Seconds since it began, as in `Row.at`."""
        return self._clock() - self._began

    async def ask(self, due: float | None = None) -> None:
        """Asks the next question, which was due at `due`."""
        at = self.now if due is None else due
        row = await self._ask(next(self._questions))
        self.rows[self.phase].append(replace(row, at=at, seconds=self.now - at))

    async def closed(self, clients: int, seconds: float) -> float:
        """So many clients, each asking again at once; complete answers a second."""
        began, rows = self.now, self.rows[self.phase]
        until, before = began + seconds, len(rows)

        async def client() -> None:
            while self.now < until:
                await self.ask()

        await asyncio.gather(*(client() for _ in range(clients)))
        return sum(map(whole, rows[before:])) / (self.now - began)

    @contextlib.asynccontextmanager
    async def at(self, rate: float) -> AsyncIterator[None]:
        """Asks so many questions a second until left, then waits for what is under way."""
        asking: set[asyncio.Task[None]] = set()

        async def offer() -> None:
            began = self.now
            for number in itertools.count():
                due = began + number / rate
                await asyncio.sleep(max(due - self.now, 0.0))
                task = asyncio.create_task(self.ask(due))
                asking.add(task)
                task.add_done_callback(asking.discard)

        offering = asyncio.create_task(offer())
        try:
            yield
        finally:
            offering.cancel()
            await asyncio.gather(offering, *asking, return_exceptions=True)


class FrontAsker:
    """Turns what becomes of a question into a row, and keeps the last answer."""

    def __init__(self, client: AnswerClient, deadline: float, passages: int | None = None) -> None:
        """`deadline`: seconds for each question; `passages`: to read, else the default."""
        self._client, self._deadline, self._passages = client, deadline, passages
        self.reply = answer_pb2.AnswerResponse()

    async def __call__(self, question: str) -> Row:
        """A row without its times."""
        request = answer_pb2.AnswerRequest(
            question=question, passages_to_read=self._passages, max_loss=0, fresh=True
        )
        try:
            self.reply = await self._client.ask(request, self._deadline)
        except WinnowError as error:
            return Row(0.0, 0.0, str(error).split(":", 1)[0], 0.0, complete=False)
        return answered(self.reply)
