"""Questions of users and their answers: domain values to messages of `answer.proto` and back."""

import json
from collections.abc import Sequence
from typing import Any

from winnow.caller import shows_details
from winnow.convert import head
from winnow.convert.by_name import (
    Choice,
    choices_of,
    milliseconds,
    numbers_of,
    optional,
    same_fields,
    value_of_message,
)
from winnow.domain.answered import Answer, Answered, Packed, Timings
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.passage import Passage
from winnow.domain.question import AnswerRequest, PartialResults, ReadScope, Retriever
from winnow.domain.shard_call import CallKind, CallOutcome, ShardCall
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, Violation
from winnow.v1 import answer_pb2

_DIGITS = 6
_DECIMALS = ("max_loss", "min_coverage", "min_wait_factor", "max_wait_factor")
_STAGES = (
    *("queue", "tokenise", "encode", "retrieve", "read", "merge", "total"),
    *("retrieve_start", "read_start", "merge_start"),
)
_QUICK = 1_000
"""Characters of metadata that are converted in less than half a millisecond."""
_SCOPES = numbers_of(ReadScope, answer_pb2.ReadScope, "READ_SCOPE_")
_SCOPES_BACK = choices_of(_SCOPES)
_RETRIEVERS = numbers_of(Retriever, answer_pb2.Retriever, "RETRIEVER_")
_PARTIAL = numbers_of(PartialResults, answer_pb2.PartialResults, "PARTIAL_RESULTS_")
_STATUSES = numbers_of(ShardStatus, answer_pb2.ShardCoverage.Status, "STATUS_")
_KINDS = numbers_of(CallKind, answer_pb2.ShardCall.Kind, "KIND_")
_OUTCOMES = numbers_of(CallOutcome, answer_pb2.ShardCall.Outcome, "OUTCOME_")


def request_of_message(message: answer_pb2.AnswerRequest) -> AnswerRequest:
    """The request as its caller meant it; options that the message does not have are None.

    Raises InvalidRequestError, which names every field with an unknown value.
    """
    violations: list[Violation] = []
    request = value_of_message(
        AnswerRequest,
        message,
        read_scope=_choice("read_scope", message.read_scope, _SCOPES, violations),
        retriever=_choice("retriever", message.retriever, _RETRIEVERS, violations),
        partial_results=_choice("partial_results", message.partial_results, _PARTIAL, violations),
        **{name: _decimal(message, name) for name in _DECIMALS},
        heads=tuple(message.heads),
        where=message.filter,
        after=_positions(message.after, violations),
    )
    if violations:
        raise InvalidRequestError(*violations)
    return request


def read_scope_message(scope: ReadScope | None) -> answer_pb2.ReadScope.ValueType:
    """The scope of a request; None leaves the choice to the server."""
    return answer_pb2.READ_SCOPE_UNSPECIFIED if scope is None else _SCOPES[scope]


def read_scope_of_message(message: int) -> ReadScope | None:
    """The scope of a reply; None if it is not known here."""
    return _SCOPES_BACK.get(message)


def retriever_message(chosen: Retriever | None) -> answer_pb2.Retriever.ValueType:
    """The retriever of a request; None leaves the choice to the server."""
    return answer_pb2.RETRIEVER_UNSPECIFIED if chosen is None else _RETRIEVERS[chosen]


def is_quick(answered: Answered) -> bool:
    """Whether the answers are converted quickly enough for an event loop.

    Metadata takes up to half a millisecond for each KB.
    """
    return sum(len(each.reading.passage.metadata) for each in answered.answers) < _QUICK


def packed(answered: Answered) -> Packed:
    """The serialised answers. May take long: call it in a thread."""
    answers = map(_answer_to_message, answered.answers)
    return Packed(answer_pb2.AnswerResponse(answers=answers).SerializeToString())


def answered_to_bytes(answered: Answered, request_id: str) -> bytes:
    """The serialised reply to a user; packed answers are copied."""
    rest = answered_to_message(answered, request_id).SerializeToString()
    # two serialised messages, one after the other, are one message
    return answered.packed.wire + rest if answered.packed else rest


def answered_to_message(answered: Answered, request_id: str) -> answer_pb2.AnswerResponse:
    """The reply to a user, without its answers if they are packed."""
    converted = {"answers", "coverage", "timings", "read_scope", "heads", "packed"}
    return answer_pb2.AnswerResponse(
        **same_fields(answered, converted),
        answers=() if answered.packed else map(_answer_to_message, answered.answers),
        coverage=_coverage_to_message(answered.coverage),
        timings=_timings_to_message(answered.timings),
        read_scope=_SCOPES[answered.read_scope],
        request_id=request_id,
        heads=map(head.head_to_message, answered.heads),
    )


def _choice(
    field: str, number: int, numbers: dict[Choice, Any], violations: list[Violation]
) -> Choice | None:
    """The choice with a number; 0 is no choice, and an unknown number a violation."""
    found = next((choice for choice, each in numbers.items() if each == number), None)
    if number and found is None:
        violations.append(Violation(field, f"{number} is not a known value"))
    return found


def _positions(
    messages: Sequence[answer_pb2.Position], violations: list[Violation]
) -> tuple[Position, ...]:
    """The positions; one that names no shard is a violation, not shard 0."""
    named = [message for message in messages if message.HasField("shard")]
    if len(named) < len(messages):
        violations.append(Violation("after", "a position names no shard"))
    return tuple(Position(message.shard, message.sequence) for message in named)


def decimal(single: float) -> float:
    """A number in single precision as it was written: 0.55, not 0.550000011920929.

    Else 0.55 of 20 shards would be 12, not 11.
    """
    return round(single, _DIGITS)


def _decimal(message: answer_pb2.AnswerRequest, name: str) -> float | None:
    value = optional(message, name)
    return None if value is None else decimal(value)


def _answer_to_message(answer: Answer) -> answer_pb2.Answer:
    reading = answer.reading
    return answer_pb2.Answer(
        text=reading.text,
        start=reading.start,
        end=reading.end,
        passage=_passage_to_message(reading.passage),
        score=reading.score,
        relevance=reading.relevance,
        span_score=reading.span_score,
        distance=reading.distance,
        shard=answer.shard,
        hybrid_distance=reading.hybrid_distance,
        words=reading.words,
        confidence=answer.confidence,
    )


def _passage_to_message(passage: Passage) -> answer_pb2.Passage:
    message = answer_pb2.Passage(id=passage.id, title=passage.title, text=passage.text)
    if passage.metadata:
        message.metadata.update(json.loads(passage.metadata))
    return message


def _coverage_to_message(coverage: Coverage) -> answer_pb2.Coverage:
    return answer_pb2.Coverage(
        passages_known=coverage.known,
        passages_searched=coverage.searched,
        passages_failed=coverage.failed,
        complete=coverage.complete,
        shards=map(_shard_coverage_to_message, coverage.shards),
    )


def _shard_coverage_to_message(part: ShardCoverage) -> answer_pb2.ShardCoverage:
    return answer_pb2.ShardCoverage(
        shard=part.shard,
        passages=part.passages,
        status=_STATUSES[part.status],
        reason=_reason(part),
        sequence=part.sequence,
    )


def _reason(part: ShardCoverage) -> str:
    """The reason why a shard was not searched, as far as the caller may see it."""
    if part.detail and shows_details():
        return f"{part.reason}: {part.detail}"
    return part.reason


def _timings_to_message(timings: Timings) -> answer_pb2.Timings:
    return answer_pb2.Timings(
        **milliseconds(timings, *_STAGES),
        shards=[
            answer_pb2.ShardTimings(shard=shard, **milliseconds(spent, "queue", "retrieve", "read"))
            for shard, spent in sorted(timings.shards.items())
        ],
        calls=map(_call_to_message, timings.calls),
    )


def _call_to_message(call: ShardCall) -> answer_pb2.ShardCall:
    return answer_pb2.ShardCall(
        shard=call.shard,
        kind=_KINDS[call.kind],
        outcome=_OUTCOMES[call.outcome],
        start_ms=call.span.start * 1e3,
        ms=call.span.seconds * 1e3,
        retrieve_start_ms=call.retrieved.start * 1e3,
        retrieve_ms=call.retrieved.seconds * 1e3,
        reads=[
            answer_pb2.ReadTiming(
                passage_id=each.passage_id,
                start_ms=each.span.start * 1e3,
                ms=each.span.seconds * 1e3,
            )
            for each in call.reads
        ],
    )
