"""Asks and times many questions, and computes figures for the reports of several commands."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from winnow.client.aio import AsyncClientApi
from winnow.client.calls import Call
from winnow.convert import answer as convert
from winnow.errors import WinnowError
from winnow.labelled_questions import LabelledQuestion
from winnow.rpc.status import code_of, error_of
from winnow.v1 import answer_pb2, answer_pb2_grpc


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """The reply to a question, or the error if it failed, and the elapsed time."""

    question: LabelledQuestion
    reply: answer_pb2.AnswerResponse | None
    """None if the question failed."""
    seconds: float
    error: str = ""
    """Why the question failed, as `STATUS: message`; empty if there is a reply."""


class QuestionTarget(Protocol):
    """What the questions are sent to: a front node, or an index in this process."""

    async def ask(
        self, request: answer_pb2.AnswerRequest, timeout: float
    ) -> answer_pb2.AnswerResponse:
        """Asks a question. Raises a WinnowError whose message begins with its gRPC status."""


class IndexTarget:
    """Sends questions to an index in this process."""

    def __init__(self, index: AsyncClientApi) -> None:
        self._index = index

    async def ask(
        self, request: answer_pb2.AnswerRequest, timeout: float
    ) -> answer_pb2.AnswerResponse:
        """Asks a question. Raises a WinnowError whose message begins with its gRPC status."""
        call: Call[answer_pb2.AnswerResponse] = Call(
            answer_pb2_grpc.AnswerServiceStub, "Answer", request, lambda reply: reply
        )
        try:
            return await self._index.run(call, timeout, None)
        except WinnowError as error:
            code = code_of(error)
            raise error_of(code, f"{code.name}: {error}", ()) from error


def with_question(options: answer_pb2.AnswerRequest, question: str) -> answer_pb2.AnswerRequest:
    """Returns a copy of `options` that asks `question`."""
    request = answer_pb2.AnswerRequest()
    request.CopyFrom(options)
    request.question = question
    return request


async def ask(
    client: QuestionTarget,
    question: LabelledQuestion,
    options: answer_pb2.AnswerRequest,
    timeout: float,
) -> QuestionOutcome:
    """Asks one question. A failure is returned, not raised."""
    request = with_question(options, question.question)
    started = time.perf_counter()
    try:
        reply = await client.ask(request, timeout)
    except WinnowError as error:
        return QuestionOutcome(question, None, time.perf_counter() - started, str(error))
    return QuestionOutcome(question, reply, time.perf_counter() - started)


async def ask_all(
    client: QuestionTarget,
    questions: Sequence[LabelledQuestion],
    options: answer_pb2.AnswerRequest,
    *,
    clients: int,
    timeout: float,
    advance: Callable[[], object],
) -> list[QuestionOutcome]:
    """Asks all questions, `clients` at a time; returns outcomes in the order of the questions.

    `advance` is called after each question.
    """
    outcomes: dict[int, QuestionOutcome] = {}
    pending = iter(enumerate(questions))

    async def work() -> None:
        for index, question in pending:
            outcomes[index] = await ask(client, question, options, timeout)
            advance()

    await asyncio.gather(*(work() for _ in range(clients)))
    return [outcomes[index] for index in range(len(questions))]


def reported_max_loss(reply: answer_pb2.AnswerResponse) -> float | None:
    """The accuracy budget that a reply reports; None from an old front node."""
    return convert.decimal(reply.max_loss) if reply.HasField("max_loss") else None


def reported_passages_needed(reply: answer_pb2.AnswerResponse) -> int | None:
    """The number of passages that had to be read for the answers; None from an old front node."""
    return reply.passages_needed if reply.HasField("passages_needed") else None


@dataclass(frozen=True, slots=True)
class Failures:
    """The number of failed questions by gRPC status, with an error message for each status."""

    errors: dict[str, int] = field(default_factory=dict)
    """Number of failures with each status, the most frequent first."""
    messages: dict[str, str] = field(default_factory=dict)
    """The first message with each status."""

    def lines(self) -> list[str]:
        """Returns a line for each gRPC status: the number of failures, and the first message."""
        return [f"{n} failed: {self.messages[status]}" for status, n in self.errors.items()]


def count_failures(messages: Iterable[str]) -> Failures:
    """Counts error messages by the gRPC status at their beginning."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for message in messages:
        status = message.partition(":")[0]
        counts[status] += 1
        first.setdefault(status, message)
    return Failures(dict(counts.most_common()), first)


def percentiles(values: Sequence[float], *shares: float) -> list[float]:
    """The percentile of the values for each share (0 to 100); zeros if there are no values."""
    return np.percentile(values, shares).tolist() if len(values) else [0.0] * len(shares)


def mean(values: Sequence[float]) -> float:
    """The mean of the values; 0 if there are none."""
    return float(np.mean(values)) if values else 0.0
