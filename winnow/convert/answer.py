"""What users ask and are told: domain values to messages of `answer.proto` and back."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

from winnow.caller import shows_details
from winnow.convert import head
from winnow.domain.answered import Answer, Answered, Packed, Timings
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.passage import Passage
from winnow.domain.question import AnswerRequest, PartialResults, ReadScope, Retriever
from winnow.domain.shard_call import CallKind, CallOutcome, ShardCall
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, Violation
from winnow.v1 import answer_pb2

Choice = TypeVar("Choice")
_DIGITS = 6
_QUICK = 1_000
"""Characters of metadata."""
_SCOPES = {
    ReadScope.GLOBAL: answer_pb2.READ_SCOPE_GLOBAL,
    ReadScope.PER_SHARD: answer_pb2.READ_SCOPE_PER_SHARD,
}
_SCOPES_BACK: dict[int, ReadScope] = {message: scope for scope, message in _SCOPES.items()}
_RETRIEVERS = {
    Retriever.DENSE: answer_pb2.RETRIEVER_DENSE,
    Retriever.SPARSE: answer_pb2.RETRIEVER_SPARSE,
    Retriever.HYBRID: answer_pb2.RETRIEVER_HYBRID,
}
_RETRIEVERS_BACK: dict[int, Retriever] = {message: way for way, message in _RETRIEVERS.items()}
_PARTIAL_BACK: dict[int, PartialResults] = {
    answer_pb2.PARTIAL_RESULTS_ALLOW: PartialResults.ALLOW,
    answer_pb2.PARTIAL_RESULTS_FORBID: PartialResults.FORBID,
}
_STATUSES = {
    ShardStatus.SEARCHED: answer_pb2.ShardCoverage.STATUS_SEARCHED,
    ShardStatus.TIMEOUT: answer_pb2.ShardCoverage.STATUS_TIMEOUT,
    ShardStatus.UNAVAILABLE: answer_pb2.ShardCoverage.STATUS_UNAVAILABLE,
    ShardStatus.OVERLOADED: answer_pb2.ShardCoverage.STATUS_OVERLOADED,
    ShardStatus.FAILED: answer_pb2.ShardCoverage.STATUS_FAILED,
    ShardStatus.NOT_LOADED: answer_pb2.ShardCoverage.STATUS_NOT_LOADED,
    ShardStatus.ADAPTIVE: answer_pb2.ShardCoverage.STATUS_ADAPTIVE,
}
_KINDS = {
    CallKind.RETRIEVE: answer_pb2.ShardCall.KIND_RETRIEVE,
    CallKind.READ: answer_pb2.ShardCall.KIND_READ,
    CallKind.SEARCH: answer_pb2.ShardCall.KIND_SEARCH,
}
_OUTCOMES = {
    CallOutcome.ANSWERED: answer_pb2.ShardCall.OUTCOME_ANSWERED,
    CallOutcome.FAILED: answer_pb2.ShardCall.OUTCOME_FAILED,
    CallOutcome.ABANDONED: answer_pb2.ShardCall.OUTCOME_ABANDONED,
}


def request_of_message(message: answer_pb2.AnswerRequest) -> AnswerRequest:
    """The request as its caller meant it; what the message does not have is None. Raises
    InvalidRequestError if naming every field with an unknown value.
    """
    violations: list[Violation] = []
    request = AnswerRequest(
        message.question,
        message.passages_to_read if message.HasField("passages_to_read") else None,
        message.answers if message.HasField("answers") else None,
        _choice("read_scope", message.read_scope, _SCOPES_BACK, violations),
        _choice("retriever", message.retriever, _RETRIEVERS_BACK, violations),
        message.max_answer_tokens if message.HasField("max_answer_tokens") else None,
        decimal(message.max_loss) if message.HasField("max_loss") else None,
        _choice("partial_results", message.partial_results, _PARTIAL_BACK, violations),
        decimal(message.min_coverage) if message.HasField("min_coverage") else None,
        decimal(message.min_wait_factor) if message.HasField("min_wait_factor") else None,
        decimal(message.max_wait_factor) if message.HasField("max_wait_factor") else None,
        tuple(message.heads),
        message.fresh,
        message.filter,
        _positions(message.after, violations),
    )
    if violations:
        raise InvalidRequestError(*violations)
    return request


def read_scope_message(scope: ReadScope | None) -> answer_pb2.ReadScope.ValueType:
    """The scope as a request says it; none leaves the choice to the server."""
    return answer_pb2.READ_SCOPE_UNSPECIFIED if scope is None else _SCOPES[scope]


def read_scope_of_message(message: int) -> ReadScope | None:
    """The scope that a reply names; None if it names none that is known here."""
    return _SCOPES_BACK.get(message)


def retriever_message(chosen: Retriever | None) -> answer_pb2.Retriever.ValueType:
    """The retriever as a request says it; none leaves the choice to the server."""
    return answer_pb2.RETRIEVER_UNSPECIFIED if chosen is None else _RETRIEVERS[chosen]


def is_quick(answered: Answered) -> bool:
    """Whether the answers are converted in a moment. Metadata is what takes long: up to half a
    millisecond for each KB.
    """
    return sum(len(each.reading.passage.metadata) for each in answered.answers) < _QUICK


def packed(answered: Answered) -> Packed:
    """The answers as they are sent. May take long: to be called in a thread."""
    answers = map(_answer_to_message, answered.answers)
    return Packed(answer_pb2.AnswerResponse(answers=answers).SerializeToString())


def answered_to_bytes(answered: Answered, request_id: str) -> bytes:
    """The reply to a user, serialised; what is packed is just copied."""
    rest = answered_to_message(answered, request_id).SerializeToString()
    # serialised messages that stand one after the other are one message
    return answered.packed.wire + rest if answered.packed else rest


def answered_to_message(answered: Answered, request_id: str) -> answer_pb2.AnswerResponse:
    """The reply to a user, without its answers if they are packed."""
    return answer_pb2.AnswerResponse(
        has_answer=answered.has_answer,
        answers=() if answered.packed else map(_answer_to_message, answered.answers),
        coverage=_coverage_to_message(answered.coverage),
        timings=_timings_to_message(answered.timings),
        passages_read=answered.passages_read,
        read_scope=_SCOPES[answered.read_scope],
        request_id=request_id,
        question_truncated=answered.question_truncated,
        passages_asked=answered.passages_asked,
        passages_granted=answered.passages_granted,
        heads=map(head.head_to_message, answered.heads),
        cached=answered.cached,
        passages_needed=answered.passages_needed,
        max_loss=answered.max_loss,
    )


def _choice(
    field: str, message: int, known: Mapping[int, Choice], violations: list[Violation]
) -> Choice | None:
    """The meaning of an enum's value; zero is no choice, and an unknown value a violation."""
    if message and message not in known:
        violations.append(Violation(field, f"{message} is not a known value"))
    return known.get(message)


def _positions(
    messages: Sequence[answer_pb2.Position], violations: list[Violation]
) -> tuple[Position, ...]:
    """Places in the logs of shards; one that names no shard is a violation, not shard 0."""
    named = [message for message in messages if message.HasField("shard")]
    if len(named) < len(messages):
        violations.append(Violation("after", "a position names no shard"))
    return tuple(Position(message.shard, message.sequence) for message in named)


def decimal(single: float) -> float:
    """A number as it was written: in single precision 0.55 of 20 shards would be 12, not 11."""
    return round(single, _DIGITS)


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
    """Why a shard was not searched, as the present caller may see it."""
    if part.detail and shows_details():
        return f"{part.reason}: {part.detail}"
    return part.reason


def _timings_to_message(timings: Timings) -> answer_pb2.Timings:
    return answer_pb2.Timings(
        queue_ms=timings.queue * 1e3,
        tokenise_ms=timings.tokenise * 1e3,
        encode_ms=timings.encode * 1e3,
        retrieve_ms=timings.retrieve * 1e3,
        read_ms=timings.read * 1e3,
        merge_ms=timings.merge * 1e3,
        total_ms=timings.total * 1e3,
        shards=[
            answer_pb2.ShardTimings(
                shard=shard,
                queue_ms=spent.queue * 1e3,
                retrieve_ms=spent.retrieve * 1e3,
                read_ms=spent.read * 1e3,
            )
            for shard, spent in sorted(timings.shards.items())
        ],
        retrieve_start_ms=timings.retrieve_start * 1e3,
        read_start_ms=timings.read_start * 1e3,
        merge_start_ms=timings.merge_start * 1e3,
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
