"""Offering one load after the other to a running system."""

import contextlib
from collections.abc import AsyncIterator

from winnow.cli.loadtest.loops import LoadResult, closed_loop, open_loop
from winnow.client import Credentials
from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.errors import WinnowError
from winnow.quoting import many
from winnow.telemetry.progress import StageProgress
from winnow.v1 import answer_pb2


class Runner:
    """Offers one load after the other."""

    def __init__(
        self,
        address: str,
        request: answer_pb2.AnswerRequest,
        timeout: float,
        warm_up: int,
        credentials: Credentials | None = None,
    ) -> None:
        self._address, self._request, self._timeout = address, request, timeout
        self._warm_up, self._credentials = warm_up, credentials
        said = request.HasField("max_loss")
        self.max_loss = convert.decimal(request.max_loss) if said else None
        """Exact match, in percent, that stopping early might lose: as asked, and then as the last
        reply said.
        """

    async def run(
        self, questions: list[str], clients: list[int], rates: list[float], seconds: float
    ) -> list[LoadResult]:
        """Warms up, then measures every closed loop and every open one.

        Raises:
            UnavailableError: nothing serves at the address.

        """
        async with AnswerClient(self._address, credentials=self._credentials) as client:
            await client.expect_serving()
            with StageProgress() as progress:
                return [
                    load
                    async for load in self._loads(
                        client, progress, questions, clients, rates, seconds
                    )
                ]

    async def _loads(
        self,
        client: AnswerClient,
        progress: StageProgress,
        questions: list[str],
        clients: list[int],
        rates: list[float],
        seconds: float,
    ) -> AsyncIterator[LoadResult]:
        async def ask(question: str) -> object:
            request = answer_pb2.AnswerRequest()
            request.CopyFrom(self._request)
            request.question = question
            try:
                reply = await client.ask(request, self._timeout)
            finally:
                progress.advance()
            if reply.HasField("max_loss"):
                self.max_loss = convert.decimal(reply.max_loss)
            return reply

        progress.start("warming up", self._warm_up)
        for place in range(self._warm_up):
            with contextlib.suppress(WinnowError):  # the loops count what fails
                await ask(questions[place % len(questions)])
        for count in clients:
            progress.start(f"closed loop, {many(count, 'client')}, {seconds:g} s", None)
            yield await closed_loop(ask, questions, count, seconds)
        for rate in rates:
            progress.start(f"open loop, {rate:g} questions/s, {seconds:g} s", None)
            yield await open_loop(ask, questions, rate, seconds)
