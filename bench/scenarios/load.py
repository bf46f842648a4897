"""Load on a front node: closed loops, and questions at a fixed rate; rows by phase."""

import asyncio
import contextlib
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from bench.scenarios.rows import OK, Row, answered, failed
from winnow.client.messages import AnswerClient
from winnow.errors import WinnowError
from winnow.v1 import answer_pb2

_PAUSE = 0.1
"""Seconds that a closed loop waits after a question that was not answered."""


class Load:
    """Asks questions, and keeps the outcome of each under the phase in which it ended."""

    def __init__(self, ask: Callable[[str], Awaitable[Row]], questions: Sequence[str]) -> None:
        """`ask` returns the row of a question, without its times."""
        self._ask = ask
        self._questions = itertools.cycle(questions)
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self.phase = ""
        self.rows: dict[str, list[Row]] = defaultdict(list)

    @property
    def now(self) -> float:
        """Seconds since the load began, as in `Row.at`."""
        return self._clock() - self._began

    async def ask(self, due: float | None = None) -> Row:
        """Asks the next question, which was due at `due` or is due now."""
        at = self.now if due is None else due
        row = replace(await self._ask(next(self._questions)), at=at, seconds=self.now - at)
        self.rows[self.phase].append(row)
        return row

    async def closed(self, clients: int, seconds: float) -> float:
        """Runs clients that each ask one question after the other.

        Returns:
            complete answers a second

        """
        began, rows = self.now, self.rows[self.phase]
        until, before = began + seconds, len(rows)

        async def client() -> None:
            while self.now < until:
                if (await self.ask()).status != OK:
                    await asyncio.sleep(_PAUSE)

        await asyncio.gather(*(client() for _ in range(clients)))
        return sum(row.whole for row in rows[before:]) / (self.now - began)

    @contextlib.asynccontextmanager
    async def at(self, rate: float) -> AsyncIterator[None]:
        """Asks `rate` questions a second until left, then waits for those under way."""
        asking: set[asyncio.Task[Row]] = set()

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
    """Asks a front node, returns rows, and keeps the last answer."""

    def __init__(self, client: AnswerClient, deadline: float, passages: int | None = None) -> None:
        """`deadline` is in seconds; `passages` are read, or the server's default number."""
        self._client, self._deadline, self._passages = client, deadline, passages
        self.reply = answer_pb2.AnswerResponse()

    async def __call__(self, question: str) -> Row:
        """Returns a row without its times."""
        request = answer_pb2.AnswerRequest(
            question=question, passages_to_read=self._passages, max_loss=0, fresh=True
        )
        try:
            self.reply = await self._client.ask(request, self._deadline)
        except WinnowError as error:
            return failed(str(error).split(":", 1)[0])
        return answered(self.reply)
