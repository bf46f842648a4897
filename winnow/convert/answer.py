"""Converts users' questions, and the answers to them, to messages of `answer.proto` and back."""

import json
from collections.abc import Sequence
from typing import Any

from winnow.caller import shows_details
from winnow.convert import head
from winnow.convert.by_name import (
    EnumType,
    choices_of,
    milliseconds,
    numbers_of,
    optional,
    same_fields,
    value_of_message,
)
from winnow.domain.answer_size import AnswerSize
from winnow.domain.answered import Answer, Answered, PackedAnswers, Timings
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.passage import Passage
from winnow.domain.question import AnswerRequest, PartialResults, ReadScope, Retriever
from winnow.domain.shard_call import CallKind, CallOutcome, ReadTime, ShardCall
from winnow.domain.source import source_of
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, Violation
from winnow.v1 import answer_pb2

_SINGLE_DIGITS = 6
_DECIMAL_OPTIONS = (
    *("max_loss", "min_coverage", "min_wait_factor", "max_wait_factor"),
    "min_confidence",
)
_STAGES = (
    *("queue", "tokenise", "encode", "retrieve", "read", "merge", "total"),
    *("retrieve_start", "read_start", "merge_start"),
)
_QUICK_METADATA = 1_000
"""Maximum number of characters of metadata that are converted in less than half a millisecond."""
_SCOPES = numbers_of(ReadScope, answer_pb2.ReadScope, "READ_SCOPE_")
_SCOPE_BY_NUMBER = choices_of(_SCOPES)
_RETRIEVERS = numbers_of(Retriever, answer_pb2.Retriever, "RETRIEVER_")
_PARTIAL_RESULTS = numbers_of(PartialResults, answer_pb2.PartialResults, "PARTIAL_RESULTS_")
_SIZES = numbers_of(AnswerSize, answer_pb2.AnswerSize, "ANSWER_SIZE_")
_SIZE_BY_NUMBER = choices_of(_SIZES)
_STATUSES = numbers_of(ShardStatus, answer_pb2.ShardCoverage.Status, "STATUS_")
_KINDS = numbers_of(CallKind, answer_pb2.ShardCall.Kind, "KIND_")
_OUTCOMES = numbers_of(CallOutcome, answer_pb2.ShardCall.Outcome, "OUTCOME_")


def request_of_message(message: answer_pb2.AnswerRequest) -> AnswerRequest:
    """Converts a request; options that are not set in the message become None.

    Raises InvalidRequestError, which names every field with an unknown value.
    """
    violations: list[Violation] = []
    request = value_of_message(
        AnswerRequest,
        message,
        read_scope=_choice("read_scope", message.read_scope, _SCOPES, violations),
        retriever=retriever_of_message(message.retriever, violations),
        partial_results=partial_results_of_message(message.partial_results, violations),
        answer_size=_choice("answer_size", message.answer_size, _SIZES, violations),
        **{name: _decimal(message, name) for name in _DECIMAL_OPTIONS},
        heads=tuple(message.heads),
        where=message.filter,
        after=positions_of_messages(message.after, violations),
    )
    if violations:
        raise InvalidRequestError(*violations)
    return request


def read_scope_message(scope: ReadScope | None) -> answer_pb2.ReadScope.ValueType:
    """Converts the read scope of a request; None leaves the choice to the server."""
    return answer_pb2.READ_SCOPE_UNSPECIFIED if scope is None else _SCOPES[scope]


def read_scope_of_message(message: int) -> ReadScope | None:
    """Converts the read scope of a reply; None for a value from a newer version."""
    return _SCOPE_BY_NUMBER.get(message)


def retriever_message(retriever: Retriever | None) -> answer_pb2.Retriever.ValueType:
    """Converts the retriever of a request; None leaves the choice to the server."""
    return answer_pb2.RETRIEVER_UNSPECIFIED if retriever is None else _RETRIEVERS[retriever]


def partial_results_message(
    choice: PartialResults | None,
) -> answer_pb2.PartialResults.ValueType:
    """Converts the choice of a request; None leaves it to the server."""
    unset = answer_pb2.PARTIAL_RESULTS_UNSPECIFIED
    return unset if choice is None else _PARTIAL_RESULTS[choice]


def answer_size_message(size: AnswerSize | None) -> answer_pb2.AnswerSize.ValueType:
    """Converts the answer size of a request; None leaves the choice to the server."""
    return answer_pb2.ANSWER_SIZE_UNSPECIFIED if size is None else _SIZES[size]


def answer_size_of_number(number: int) -> AnswerSize | None:
    """Converts the size of an answer; None from an older front, or for an unknown value."""
    return _SIZE_BY_NUMBER.get(number)


def is_cheap_to_convert(answered: Answered) -> bool:
    """Whether converting the answers is fast enough for an event loop.

    Metadata takes up to half a millisecond per KB.
    """
    return sum(len(each.reading.passage.metadata) for each in answered.answers) < _QUICK_METADATA


def pack_answers(answered: Answered) -> PackedAnswers:
    """Serialises the answers. Call it in a thread: long metadata takes milliseconds."""
    answers = map(_answer_to_message, answered.answers)
    return PackedAnswers(answer_pb2.AnswerResponse(answers=answers).SerializeToString())


def answered_to_bytes(answered: Answered, request_id: str) -> bytes:
    """Serialises the reply to a user. Answers that are already serialised are only copied."""
    rest = answered_to_message(answered, request_id).SerializeToString()
    # concatenated serialised messages are one message
    return answered.packed.wire + rest if answered.packed else rest


def answered_to_message(answered: Answered, request_id: str) -> answer_pb2.AnswerResponse:
    """Converts the reply to a user. Leaves out answers that are already serialised."""
    converted = {"answers", "coverage", "timings", "read_scope", "heads", "packed"}
    return answer_pb2.AnswerResponse(
        **same_fields(answered, converted | {"lost_late_interaction"}),
        answers=() if answered.packed else map(_answer_to_message, answered.answers),
        coverage=coverage_to_message(answered.coverage),
        timings=_timings_to_message(answered.timings),
        read_scope=_SCOPES[answered.read_scope],
        request_id=request_id,
        heads=map(head.head_to_message, answered.heads),
    )


def retriever_of_message(number: int, violations: list[Violation]) -> Retriever | None:
    """Converts the retriever of a request; None for the server's default."""
    return _choice("retriever", number, _RETRIEVERS, violations)


def partial_results_of_message(number: int, violations: list[Violation]) -> PartialResults | None:
    """Converts the choice of a request; None for the server's default."""
    return _choice("partial_results", number, _PARTIAL_RESULTS, violations)


def _choice(
    field: str, number: int, numbers: dict[EnumType, Any], violations: list[Violation]
) -> EnumType | None:
    """Returns the enum value of a number; None for 0. Adds a violation for an unknown number."""
    choice = next((choice for choice, each in numbers.items() if each == number), None)
    if number and choice is None:
        names = ", ".join(each.name for each in numbers)
        violations.append(Violation(field, f"{number} is none of {names}"))
    return choice


def positions_of_messages(
    messages: Sequence[answer_pb2.Position], violations: list[Violation]
) -> tuple[Position, ...]:
    """Converts positions. Adds a violation for a position without a shard, instead of shard 0."""
    complete = [message for message in messages if message.HasField("shard")]
    if len(complete) < len(messages):
        violations.append(Violation("after", "a position has no shard"))
    return tuple(map(position_of_message, complete))


def position_of_message(message: answer_pb2.Position) -> Position:
    """Converts a position."""
    return Position(message.shard, message.sequence, message.index)


def decimal(single: float) -> float:
    """Rounds a single-precision number to its decimal value: 0.55, not 0.550000011920929.

    Without rounding, 0.55 of 20 shards would be rounded up to 12 instead of 11.
    """
    return round(single, _SINGLE_DIGITS)


def _decimal(message: answer_pb2.AnswerRequest, name: str) -> float | None:
    value = optional(message, name)
    return None if value is None else decimal(value)


def _answer_to_message(answer: Answer) -> answer_pb2.Answer:
    reading = answer.reading
    return answer_pb2.Answer(
        text=reading.answer,
        start=reading.start,
        end=reading.end,
        passage=passage_to_message(reading.passage),
        score=reading.score,
        relevance=reading.relevance,
        span_score=reading.span_score,
        distance=reading.distance,
        shard=answer.shard,
        hybrid_distance=reading.hybrid_distance,
        words=reading.words,
        confidence=answer.confidence,
        source=source_to_message(reading.passage),
        sentence_start=answer.sentence[0],
        sentence_end=answer.sentence[1],
        size=_SIZES[answer.size],
        shown_text=answer.shown_text,
        sentence_confidence=answer.sentence_confidence,
    )


def source_to_message(passage: Passage) -> answer_pb2.Source | None:
    """Converts the source of a passage; None without a document."""
    source = source_of(json.loads(passage.metadata)) if passage.metadata else None
    return None if source is None else answer_pb2.Source(**same_fields(source))


def passage_to_message(passage: Passage) -> answer_pb2.Passage:
    """Converts a passage. Metadata takes up to half a millisecond per KB."""
    message = answer_pb2.Passage(id=passage.id, title=passage.title, text=passage.text)
    if passage.metadata:
        message.metadata.update(json.loads(passage.metadata))
    return message


def coverage_to_message(coverage: Coverage) -> answer_pb2.Coverage:
    """Converts the coverage, with the details that the caller may see."""
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
        reason=_reason(part) if part.reason or part.detail else "",
        sequence=part.sequence,
    )


def _reason(part: ShardCoverage) -> str:
    """Why a shard was not searched, with the details that the caller may see."""
    if part.detail and shows_details():
        return f"{part.reason}: {part.detail}"
    return part.reason


def _timings_to_message(timings: Timings) -> answer_pb2.Timings:
    return answer_pb2.Timings(
        **milliseconds(timings, *_STAGES),
        shards=[
            answer_pb2.ShardTimings(
                shard=shard,
                queue_ms=spent.queue * 1e3,
                retrieve_ms=spent.retrieve * 1e3,
                read_ms=spent.read * 1e3,
                candidates_without_tokens=spent.without_tokens,
            )
            for shard, spent in sorted(timings.shards.items())
        ],
        calls=map(_call_to_message, timings.calls),
    )


def _read_time_to_message(read: ReadTime) -> answer_pb2.ReadTiming:
    return answer_pb2.ReadTiming(
        passage_id=read.passage_id, start_ms=read.span.start * 1e3, ms=read.span.seconds * 1e3
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
        reads=map(_read_time_to_message, call.reads),
    )
