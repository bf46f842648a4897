"""Serves `/v1/answer` and `/v1/answers`: converts requests and replies of the answer core."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import structlog

from winnow.convert import answer as convert
from winnow.deadline import Deadline
from winnow.errors import WinnowError, invalid_field
from winnow.rpc import request_id
from winnow.rpc.server import KIB
from winnow.rpc.status import code_of
from winnow.stateless.answer.core import AnswerCalls
from winnow.stateless.http.call import (
    MAX_ESCAPED_BYTES,
    HttpOperation,
    NewDeadline,
    OperationLimits,
)
from winnow.stateless.http.json_fields import json_names_in_errors
from winnow.stateless.http.packed_answers import PackedBatchReply, PackedReply
from winnow.stateless.http.problems import problem_of
from winnow.stateless.http.rpc_operation import before_its_deadline
from winnow.v1 import answer_pb2, http_pb2

_log = structlog.get_logger("stateless.http")
MAX_QUESTIONS = 100
"""Maximum number of questions in a request."""
_MAX_BODY_BYTES = 16 * KIB * MAX_ESCAPED_BYTES
_MAX_BODY_BYTES_OF_MANY = 256 * KIB * MAX_ESCAPED_BYTES
_MAX_CONCURRENT = 4
"""Maximum number of concurrent questions of a request. More questions might be refused, or delay
other callers.
"""
ONE_OF_MANY = "AnswerOfMany"
"""Name of one question of an `Answers` request in metrics. The request itself succeeds even if all
its questions fail.
"""
RecordPart = Callable[[str, str, float], None]
"""Records one question of a request with several: `record(name, gRPC status, seconds)`."""


def answer_operations(
    core: AnswerCalls, limits: OperationLimits, record_part: RecordPart
) -> list[HttpOperation]:
    """Returns the operations of the answer core.

    `record_part` records each question of a request with several questions.
    """
    answer = before_its_deadline(partial(_answer, core))
    return [
        HttpOperation(
            name="Answer",
            path="/v1/answer",
            about="Answers one question.",
            scope="ask",
            run=answer,
            request=answer_pb2.AnswerRequest,
            response=answer_pb2.AnswerResponse,
            limits=limits,
            max_body_bytes=_MAX_BODY_BYTES,
        ),
        HttpOperation(
            name="Answers",
            path="/v1/answers",
            about=f"Answers up to {MAX_QUESTIONS} questions, {_MAX_CONCURRENT} at a time. If a "
            "question fails, its result is a problem instead of an answer; the other questions are "
            "answered. The timeout of the request covers all questions together.",
            scope="ask",
            run=partial(_answers, answer, record_part),
            request=http_pb2.AnswersRequest,
            response=http_pb2.AnswersResponse,
            limits=limits,
            max_body_bytes=_MAX_BODY_BYTES_OF_MANY,
            calls_of_request=lambda message: len(message.requests),
        ),
    ]


async def _answer(
    core: AnswerCalls, message: answer_pb2.AnswerRequest, deadline: Deadline, client: str
) -> answer_pb2.AnswerResponse | PackedReply:
    answered = await core.answer(convert.request_of_message(message), deadline, client)
    reply = convert.answered_to_message(answered, request_id.current())
    return reply if answered.packed is None else PackedReply(reply, answered.packed)


async def _answers(
    answer_one: Callable[..., Coroutine[Any, Any, answer_pb2.AnswerResponse | PackedReply]],
    record_part: RecordPart,
    message: http_pb2.AnswersRequest,
    new_deadline: NewDeadline,
    client: str,
) -> http_pb2.AnswersResponse | PackedBatchReply:
    count = len(message.requests)
    if not 1 <= count <= MAX_QUESTIONS:
        problem = f"has {count} questions, but 1 to {MAX_QUESTIONS} are allowed"
        raise invalid_field("requests", problem)
    slots = asyncio.Semaphore(_MAX_CONCURRENT)
    for each in message.requests:
        each.index = each.index or message.index
        each.tenant = each.tenant or message.tenant

    async def answer(each: answer_pb2.AnswerRequest) -> http_pb2.AnswerResult | PackedReply:
        async with slots:
            started, code = time.perf_counter(), "CANCELLED"
            try:
                with json_names_in_errors(answer_pb2.AnswerRequest):
                    response = await answer_one(each, new_deadline, client)
                code = "OK"
                if isinstance(response, PackedReply):
                    return response
                return http_pb2.AnswerResult(response=response)
            except WinnowError as error:
                code = code_of(error).name
                return http_pb2.AnswerResult(problem=problem_of(error))
            except Exception as error:  # noqa: BLE001 (the other answers are still returned)
                code = "INTERNAL"
                _log.error("question failed", error=str(error), exc_info=error)
                return http_pb2.AnswerResult(problem=problem_of(WinnowError()))
            finally:
                record_part(ONE_OF_MANY, code, time.perf_counter() - started)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(answer(each)) for each in message.requests]
    results = [task.result() for task in tasks]
    unpacked = [each for each in results if isinstance(each, http_pb2.AnswerResult)]
    if len(unpacked) < len(results):
        return PackedBatchReply(results, request_id.current())
    return http_pb2.AnswersResponse(results=unpacked, request_id=request_id.current())
