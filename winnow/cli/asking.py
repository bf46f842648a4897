"""Asking many questions, timed, and the figures that several reports share."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from winnow.cli.questions import AskedQuestion
from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.errors import WinnowError
from winnow.v1 import answer_pb2


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """A question, its reply, and the seconds it took; no reply if the question failed."""

    asked: AskedQuestion
    reply: answer_pb2.AnswerResponse | None
    seconds: float
    error: str = ""
    """Why the question failed: status, colon, words."""


def with_question(options: answer_pb2.AnswerRequest, question: str) -> answer_pb2.AnswerRequest:
    """A request for `question` with the options of another one."""
    request = answer_pb2.AnswerRequest()
    request.CopyFrom(options)
    request.question = question
    return request


async def ask(
    client: AnswerClient, asked: AskedQuestion, options: answer_pb2.AnswerRequest, timeout: float
) -> QuestionOutcome:
    """Asks one question; a failure is an outcome, too."""
    request = with_question(options, asked.question)
    started = time.perf_counter()
    try:
        reply = await client.ask(request, timeout)
    except WinnowError as error:
        return QuestionOutcome(asked, None, time.perf_counter() - started, str(error))
    return QuestionOutcome(asked, reply, time.perf_counter() - started)


async def ask_all(
    client: AnswerClient,
    questions: Sequence[AskedQuestion],
    options: answer_pb2.AnswerRequest,
    *,
    clients: int,
    timeout: float,
    advance: Callable[[], object],
) -> list[QuestionOutcome]:
    """Asks every question, `clients` at a time; returns the outcomes in the order of the questions.

    `advance` is called after each of them.
    """
    outcomes: dict[int, QuestionOutcome] = {}
    waiting = iter(range(len(questions)))

    async def work() -> None:
        for place in waiting:
            outcomes[place] = await ask(client, questions[place], options, timeout)
            advance()

    await asyncio.gather(*(work() for _ in range(clients)))
    return [outcomes[place] for place in range(len(questions))]


def max_loss_of(reply: answer_pb2.AnswerResponse) -> float | None:
    """The accuracy budget that a reply names; None if the front node is too old to name it."""
    return convert.decimal(reply.max_loss) if reply.HasField("max_loss") else None


def needed_by(reply: answer_pb2.AnswerResponse) -> int | None:
    """The passages that the answers rest on; None if the front node is too old to say."""
    return reply.passages_needed if reply.HasField("passages_needed") else None


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed questions, by gRPC status."""

    errors: dict[str, int] = field(default_factory=dict)
    """Count of each status, the most frequent first."""
    said: dict[str, str] = field(default_factory=dict)
    """The first message of each status."""

    def lines(self) -> list[str]:
        """A line for each status."""
        return [f"{count} failed: {self.said[status]}" for status, count in self.errors.items()]


def failures(messages: Iterable[str]) -> Failures:
    """Counts messages that begin with a status and a colon."""
    counts: Counter[str] = Counter()
    said: dict[str, str] = {}
    for message in messages:
        status = message.partition(":")[0]
        counts[status] += 1
        said.setdefault(status, message)
    return Failures(dict(counts.most_common()), said)


def percentiles(values: Sequence[float], *shares: float) -> list[float]:
    """The percentiles of some values, one for each share from 0 to 100; zeros without values."""
    return np.percentile(values, shares).tolist() if len(values) else [0.0] * len(shares)


def mean(values: Sequence[float]) -> float:
    """The mean; 0 without values."""
    return float(np.mean(values)) if values else 0.0
