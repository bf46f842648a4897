"""Domain values to messages and back: the one file that knows both."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from winnow.domain.answered import Answer, Answered, ShardTimings, Timings
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.passage import Hit, Passage
from winnow.domain.question import Depth, EncodedQuestion, PartialResults, ReadScope, Retriever
from winnow.domain.reading import Reading
from winnow.domain.shard import ShardInfo
from winnow.errors import InvalidRequestError, Violation
from winnow.searcher import Read, Retrieved
from winnow.v1 import answer_pb2, shard_pb2

Choice = TypeVar("Choice")

_SCOPES = {
    ReadScope.GLOBAL: answer_pb2.READ_SCOPE_GLOBAL,
    ReadScope.PER_SHARD: answer_pb2.READ_SCOPE_PER_SHARD,
}
_SCOPES_BACK: dict[int, ReadScope] = {message: scope for scope, message in _SCOPES.items()}
_RETRIEVERS = {
    Retriever.DENSE: answer_pb2.RETRIEVER_DENSE,
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


def read_scope(message: int) -> ReadScope | None:
    """The scope of a request; none if it leaves the choice to the server.

    Raises:
        InvalidRequestError: the value is unknown.

    """
    return _choice("read_scope", message, _SCOPES_BACK)


def read_scope_message(scope: ReadScope | None) -> answer_pb2.ReadScope.ValueType:
    """The scope as a request says it; none leaves the choice to the server."""
    return answer_pb2.READ_SCOPE_UNSPECIFIED if scope is None else _SCOPES[scope]


def retriever(message: int) -> Retriever | None:
    """The retriever of a request; none if it leaves the choice to the server.

    Raises:
        InvalidRequestError: the value is unknown.

    """
    return _choice("retriever", message, _RETRIEVERS_BACK)


def retriever_message(chosen: Retriever | None) -> answer_pb2.Retriever.ValueType:
    """The retriever as a request says it; none leaves the choice to the server."""
    return answer_pb2.RETRIEVER_UNSPECIFIED if chosen is None else _RETRIEVERS[chosen]


def depth_of_message(message: shard_pb2.RetrieveRequest | shard_pb2.SearchRequest) -> Depth:
    """How far a shard is to look."""
    return Depth(message.passages, message.candidates)


def partial_results(message: int) -> PartialResults | None:
    """What a request says of partial results; none if it leaves the choice to the server.

    Raises:
        InvalidRequestError: the value is unknown.

    """
    return _choice("partial_results", message, _PARTIAL_BACK)


def question_to_message(question: EncodedQuestion) -> shard_pb2.EncodedQuestion:
    """The question as it travels; the vector as little-endian float32."""
    return shard_pb2.EncodedQuestion(
        text=question.text,
        token_ids=question.token_ids,
        vector=question.vector.astype("<f4", copy=False).tobytes(),
        bundle_fingerprint=question.bundle_fingerprint,
    )


def question_of_message(message: shard_pb2.EncodedQuestion) -> EncodedQuestion:
    """The question as it arrived.

    Raises:
        InvalidRequestError: the vector is not a whole number of float32, or not finite.

    """
    if len(message.vector) % 4:
        raise InvalidRequestError(
            Violation("question.vector", f"{len(message.vector)} bytes are no float32 values")
        )
    vector = np.frombuffer(message.vector, dtype="<f4").astype(np.float32, copy=False)
    if not np.isfinite(vector).all():
        raise InvalidRequestError(Violation("question.vector", "not every value is finite"))
    return EncodedQuestion(
        message.text, tuple(message.token_ids), vector, message.bundle_fingerprint
    )


def hits_to_messages(hits: Iterable[Hit]) -> list[shard_pb2.Hit]:
    """Hits as they travel."""
    return [
        shard_pb2.Hit(row=h.row, passage_id=h.passage_id, distance=h.distance, fused=h.fused)
        for h in hits
    ]


def hits_of_messages(messages: Iterable[shard_pb2.Hit], generation: str) -> tuple[Hit, ...]:
    """Hits as they arrived; all are of one generation, which travels beside them."""
    return tuple(Hit(m.row, m.passage_id, m.distance, m.fused, generation) for m in messages)


def generation_of(hits: Sequence[Hit]) -> str:
    """The generation that travels beside hits of one shard."""
    return hits[0].generation if hits else ""


def retrieved_to_message(retrieved: Retrieved) -> shard_pb2.RetrieveResponse:
    """What a shard retrieved."""
    return shard_pb2.RetrieveResponse(
        hits=hits_to_messages(retrieved.hits),
        queue_ms=retrieved.timings.queue * 1e3,
        retrieve_ms=retrieved.timings.retrieve * 1e3,
        generation=generation_of(retrieved.hits),
        near=retrieved.near,
        idle_readers=retrieved.idle,
    )


def retrieved_of_message(message: shard_pb2.RetrieveResponse) -> Retrieved:
    """What a shard retrieved."""
    timings = ShardTimings(message.queue_ms / 1e3, message.retrieve_ms / 1e3)
    hits = hits_of_messages(message.hits, message.generation)
    return Retrieved(hits, tuple(message.near), timings, message.idle_readers)


def read_to_message(read: Read) -> shard_pb2.ReadResponse:
    """What a shard read."""
    return shard_pb2.ReadResponse(
        readings=map(_reading_to_message, read.readings),
        queue_ms=read.timings.queue * 1e3,
        read_ms=read.timings.read * 1e3,
    )


def read_of_message(message: shard_pb2.ReadResponse) -> Read:
    """What a shard read."""
    timings = ShardTimings(queue=message.queue_ms / 1e3, read=message.read_ms / 1e3)
    return Read(tuple(map(_reading_of_message, message.readings)), timings)


def search_to_message(read: Read) -> shard_pb2.SearchResponse:
    """What a shard retrieved and read."""
    return shard_pb2.SearchResponse(
        readings=map(_reading_to_message, read.readings),
        queue_ms=read.timings.queue * 1e3,
        retrieve_ms=read.timings.retrieve * 1e3,
        read_ms=read.timings.read * 1e3,
    )


def search_of_message(message: shard_pb2.SearchResponse) -> Read:
    """What a shard retrieved and read."""
    timings = ShardTimings(message.queue_ms / 1e3, message.retrieve_ms / 1e3, message.read_ms / 1e3)
    return Read(tuple(map(_reading_of_message, message.readings)), timings)


def info_to_message(info: ShardInfo) -> shard_pb2.GetShardInfoResponse:
    """What a shard says of itself."""
    return shard_pb2.GetShardInfoResponse(
        shard=info.shard,
        shards=info.shards,
        index_id=info.index_id,
        passages=info.passages,
        dimension=info.dimension,
        bundle_name=info.bundle_name,
        bundle_fingerprint=info.bundle_fingerprint,
        generation=info.generation,
        index_passages=info.index_passages,
        seconds_per_read=info.seconds_per_read,
        reads_in_hand=info.reads_in_hand,
    )


def info_of_message(message: shard_pb2.GetShardInfoResponse) -> ShardInfo:
    """What a shard says of itself."""
    return ShardInfo(
        message.shard,
        message.shards,
        message.index_id,
        message.passages,
        message.dimension,
        message.bundle_name,
        message.bundle_fingerprint,
        message.generation,
        message.index_passages,
        message.seconds_per_read,
        message.reads_in_hand,
    )


def answered_to_message(
    answered: Answered, request_id: str, passages_asked: int, passages_granted: int
) -> answer_pb2.AnswerResponse:
    """The reply to a user, with the passages that should and that might be read for it."""
    return answer_pb2.AnswerResponse(
        has_answer=answered.has_answer,
        answers=map(_answer_to_message, answered.answers),
        coverage=_coverage_to_message(answered.coverage),
        timings=_timings_to_message(answered.timings),
        passages_read=answered.passages_read,
        read_scope=_SCOPES[answered.read_scope],
        request_id=request_id,
        question_truncated=answered.question_truncated,
        passages_asked=passages_asked,
        passages_granted=passages_granted,
    )


def _choice(field: str, message: int, known: Mapping[int, Choice]) -> Choice | None:
    """What an enum of a request means; zero is no choice."""
    if message == 0:
        return None
    if message not in known:
        raise InvalidRequestError(Violation(field, f"{message} is not a known value"))
    return known[message]


def _reading_to_message(reading: Reading) -> shard_pb2.Reading:
    return shard_pb2.Reading(
        passage_id=reading.passage.id,
        title=reading.passage.title,
        text=reading.passage.text,
        start=reading.start,
        end=reading.end,
        score=reading.score,
        relevance=reading.relevance,
        span_score=reading.span_score,
        distance=reading.distance,
        fused=reading.fused,
    )


def _reading_of_message(message: shard_pb2.Reading) -> Reading:
    return Reading(
        Passage(message.passage_id, message.title, message.text),
        message.start,
        message.end,
        message.score,
        message.relevance,
        message.span_score,
        message.distance,
        message.fused,
    )


def _answer_to_message(answer: Answer) -> answer_pb2.Answer:
    reading = answer.reading
    return answer_pb2.Answer(
        text=reading.text,
        start=reading.start,
        end=reading.end,
        passage=answer_pb2.Passage(
            id=reading.passage.id, title=reading.passage.title, text=reading.passage.text
        ),
        score=reading.score,
        relevance=reading.relevance,
        span_score=reading.span_score,
        distance=reading.distance,
        shard=answer.shard,
        fused=reading.fused,
    )


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
        reason=part.reason,
    )


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
    )
