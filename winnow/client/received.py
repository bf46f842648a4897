"""Messages of the answer service to plain values."""

from google.protobuf import json_format

from winnow.client.predicting import heads_of
from winnow.client.replies import (
    Answer,
    Coverage,
    Passage,
    Reply,
    ShardCoverage,
)
from winnow.client.timed import timings_of
from winnow.convert import answer as convert
from winnow.domain.coverage import ShardStatus
from winnow.v1 import answer_pb2


def reply_of(question: str, message: answer_pb2.AnswerResponse) -> Reply:
    """The reply to `question`."""
    return Reply(
        question=question,
        has_answer=message.has_answer,
        answers=tuple(map(_answer, message.answers)),
        coverage=_coverage(message.coverage),
        timings=timings_of(message.timings),
        passages_read=message.passages_read,
        passages_asked=message.passages_asked,
        passages_granted=message.passages_granted,
        read_scope=convert.read_scope_of_message(message.read_scope),
        request_id=message.request_id,
        question_truncated=message.question_truncated,
        heads=heads_of(message.heads),
        cached=message.cached,
        passages_needed=message.passages_needed if message.HasField("passages_needed") else None,
        max_loss=convert.decimal(message.max_loss) if message.HasField("max_loss") else None,
    )


def _answer(message: answer_pb2.Answer) -> Answer:
    passage = message.passage
    return Answer(
        text=message.text,
        start=message.start,
        end=message.end,
        score=message.score,
        passage=Passage(
            passage.id, passage.title, passage.text, json_format.MessageToDict(passage.metadata)
        ),
        shard=message.shard,
        relevance=message.relevance,
        span_score=message.span_score,
        distance=message.distance,
        hybrid_distance=message.hybrid_distance,
        words=message.words,
        confidence=message.confidence if message.HasField("confidence") else None,
    )


def _coverage(message: answer_pb2.Coverage) -> Coverage:
    return Coverage(
        complete=message.complete,
        known=message.passages_known,
        searched=message.passages_searched,
        failed=message.passages_failed,
        shards=tuple(
            ShardCoverage(
                part.shard,
                part.passages,
                _status(part.status),
                part.reason,
                part.sequence if part.HasField("sequence") else None,
            )
            for part in message.shards
        ),
    )


def _status(message: int) -> ShardStatus:
    """A status that a newer front node invented is a failure of some kind."""
    known = answer_pb2.ShardCoverage.Status.values()
    if message not in known:
        return ShardStatus.FAILED
    name = answer_pb2.ShardCoverage.Status.Name(answer_pb2.ShardCoverage.Status.ValueType(message))
    return ShardStatus.__members__.get(name.removeprefix("STATUS_"), ShardStatus.FAILED)
