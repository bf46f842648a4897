"""Offers one load after the other to a running system."""

import contextlib

from winnow.cli.asking import max_loss_of, with_question
from winnow.cli.loadtest.loops import LoadResult, closed_loop, open_loop
from winnow.client import Credentials
from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.errors import WinnowError
from winnow.quoting import many
from winnow.telemetry.progress import StageProgress
from winnow.v1 import answer_pb2


class LoadRunner:
    """Offers loads of questions with the same options."""

    def __init__(
        self,
        address: str,
        request: answer_pb2.AnswerRequest,
        *,
        timeout: float,
        warm_up: int,
        credentials: Credentials | None = None,
    ) -> None:
        """`timeout`: seconds of a question; `warm_up`: questions that are not measured."""
        self._address, self._request, self._timeout = address, request, timeout
        self._warm_up, self._credentials = warm_up, credentials
        asked = request.HasField("max_loss")
        self.max_loss = convert.decimal(request.max_loss) if asked else None
        """Accuracy budget: as asked for, then as the last reply named it."""

    async def run(
        self, questions: list[str], clients: list[int], rates: list[float], seconds: float
    ) -> list[LoadResult]:
        """Warms up, then measures each closed loop (`clients`) and each open one (`rates`).

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
                    if (loss := max_loss_of(reply)) is not None:
                        self.max_loss = loss
                    return reply

                progress.start("warming up", self._warm_up)
                for place in range(self._warm_up):
                    with contextlib.suppress(WinnowError):  # the loops count failures
                        await ask(questions[place % len(questions)])
                for count in clients:
                    progress.start(f"closed loop, {many(count, 'client')}, {seconds:g} s", None)
                    loads.append(await closed_loop(ask, questions, count, seconds))
                for rate in rates:
                    progress.start(f"open loop, {rate:g} questions/s, {seconds:g} s", None)
                    loads.append(await open_loop(ask, questions, rate, seconds))
        return loads
