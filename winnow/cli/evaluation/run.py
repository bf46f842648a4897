"""Asking a running system every question of a file."""

import asyncio
import time
from collections.abc import Callable, Sequence

from winnow.cli.evaluation.tally import QuestionOutcome
from winnow.cli.questions import AskedQuestion
from winnow.client.messages import AnswerClient
from winnow.errors import WinnowError
from winnow.v1 import answer_pb2


async def ask_all(
    client: AnswerClient,
    questions: Sequence[AskedQuestion],
    request: answer_pb2.AnswerRequest,
    clients: int,
    timeout: float,
    advance: Callable[[], object],
) -> list[QuestionOutcome]:
    """Asks with `request`'s options, `clients` questions at a time; outcomes in file order."""
    outcomes: dict[int, QuestionOutcome] = {}
    waiting = iter(range(len(questions)))

    async def work() -> None:
        for place in waiting:
            outcomes[place] = await _ask(client, questions[place], request, timeout)
            advance()

    await asyncio.gather(*(work() for _ in range(clients)))
    return [outcomes[place] for place in range(len(questions))]


async def _ask(
    client: AnswerClient,
    asked: AskedQuestion,
    options: answer_pb2.AnswerRequest,
    timeout: float,
) -> QuestionOutcome:
    request = answer_pb2.AnswerRequest()
    request.CopyFrom(options)
    request.question = asked.question
    started = time.perf_counter()
    try:
        reply = await client.ask(request, timeout)
    except WinnowError as error:
        return QuestionOutcome(asked, None, time.perf_counter() - started, str(error))
    return QuestionOutcome(asked, reply, time.perf_counter() - started)
