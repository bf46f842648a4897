"""`/v1/answer` and `/v1/answers`: convert requests, call the answer core, convert answers."""

import asyncio
import time
from collections.abc import Callable
from functools import partial

import structlog

from winnow.convert import answer as convert
from winnow.errors import InvalidRequestError, Violation, WinnowError
from winnow.rpc import request_id
from winnow.rpc.server import KIB
from winnow.rpc.status import code_of
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.http.call import ESCAPED, HttpOperation, NewDeadline, Refusal
from winnow.stateless.http.headers import in_time
from winnow.stateless.http.packed_answers import PackedReply, SeveralReplies
from winnow.stateless.http.problems import problem_of
from winnow.v1 import answer_pb2, http_pb2

_log = structlog.get_logger("stateless.http")
MOST_QUESTIONS = 100
"""Most questions of a request."""
_LARGEST = 16 * KIB * ESCAPED
_LARGEST_OF_MANY = 256 * KIB * ESCAPED
_AT_ONCE = 4
"""Questions of a request that are asked at the same time. More would be refused, or take the places
of other callers."""
ONE_OF_MANY = "AnswerOfMany"
"""Name in metrics of a question of `Answers`, a call that succeeds even if all questions fail."""
PartFinished = Callable[[str, str, float], None]
"""Called after every question of several with its name, its gRPC status, and its seconds."""


def answer_operations(
    core: AnswerCore, seconds: float, refusal: Refusal, finished: PartFinished
) -> list[HttpOperation]:
    """The operations of the answer core.

    Args:
        core: answers questions.
        seconds: for a question whose caller sets no deadline.
        refusal: says which client is refused before its question is read.
        finished: is called after each question of a request that has several.

    """
    return [
        HttpOperation(
            name="Answer",
            path="/v1/answer",
            about="Answers one question.",
            scope="ask",
            run=partial(_answer, core),
            request=answer_pb2.AnswerRequest,
            response=answer_pb2.AnswerResponse,
            seconds=seconds,
            largest=_LARGEST,
            refusal=refusal,
        ),
        HttpOperation(
            name="Answers",
            path="/v1/answers",
            about=f"Answers up to {MOST_QUESTIONS} questions, {_AT_ONCE} at a time. One that fails "
            "has a problem in the place of its answer; the others stay. The time that a caller "
            "allows is for all of them together.",
            scope="ask",
            run=partial(_answers, core, finished),
            request=http_pb2.AnswersRequest,
            response=http_pb2.AnswersResponse,
            seconds=seconds,
            largest=_LARGEST_OF_MANY,
            refusal=refusal,
            calls=lambda message: len(message.requests),
        ),
    ]


async def _answer(
    core: AnswerCore, message: answer_pb2.AnswerRequest, new_deadline: NewDeadline, client: str
) -> answer_pb2.AnswerResponse | PackedReply:
    deadline, request = new_deadline(), convert.request_of_message(message)
    answered = await in_time(core.answer(request, deadline, client), deadline)
    reply = convert.answered_to_message(answered, request_id.current())
    return reply if answered.packed is None else PackedReply(reply, answered.packed)


async def _answers(
    core: AnswerCore,
    finished: PartFinished,
    message: http_pb2.AnswersRequest,
    new_deadline: NewDeadline,
    client: str,
) -> http_pb2.AnswersResponse | SeveralReplies:
    count = len(message.requests)
    if not 1 <= count <= MOST_QUESTIONS:
        wrong = f"has {count} questions, 1 to {MOST_QUESTIONS} are allowed"
        raise InvalidRequestError(Violation("requests", wrong))
    places = asyncio.Semaphore(_AT_ONCE)

    async def result(each: answer_pb2.AnswerRequest) -> http_pb2.AnswerResult | PackedReply:
        async with places:
            started, code = time.perf_counter(), "CANCELLED"
            try:
                response = await _answer(core, each, new_deadline, client)
                code = "OK"
                if isinstance(response, PackedReply):
                    return response
                return http_pb2.AnswerResult(response=response)
            except WinnowError as error:
                code = code_of(error).name
                return http_pb2.AnswerResult(problem=problem_of(error))
            except Exception as error:  # noqa: BLE001 (the other answers are not thrown away)
                code = "INTERNAL"
                _log.error("question failed", error=str(error), exc_info=error)
                return http_pb2.AnswerResult(problem=problem_of(WinnowError()))
            finally:
                finished(ONE_OF_MANY, code, time.perf_counter() - started)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(result(each)) for each in message.requests]
    results = [task.result() for task in tasks]
    short = [each for each in results if isinstance(each, http_pb2.AnswerResult)]
    if len(short) < len(results):
        return SeveralReplies(results, request_id.current())
    return http_pb2.AnswersResponse(results=short, request_id=request_id.current())
