"""Converts reply messages of the answer service to plain values."""

from collections.abc import Iterable

from google.protobuf import json_format

from winnow.client.predicting import head_predictions
from winnow.client.replies import (
    Answer,
    Coverage,
    Passage,
    ReadTiming,
    Reply,
    ShardCall,
    ShardCoverage,
    ShardTimings,
    Timings,
)
from winnow.convert import answer as convert
from winnow.convert.by_name import value_of_message
from winnow.domain.coverage import ShardStatus
from winnow.domain.shard_call import CallKind, CallOutcome
from winnow.domain.source import Source
from winnow.v1 import answer_pb2


def reply_of_message(question: str, message: answer_pb2.AnswerResponse) -> Reply:
    """Converts the reply to a question."""
    return value_of_message(
        Reply,
        message,
        question=question,
        answers=tuple(map(_answer, message.answers)),
        coverage=coverage_of_message(message.coverage),
        timings=_timings(message.timings),
        read_scope=convert.read_scope_of_message(message.read_scope),
        heads=head_predictions(message.heads),
        max_loss=convert.decimal(message.max_loss) if message.HasField("max_loss") else None,
    )


def _answer(message: answer_pb2.Answer) -> Answer:
    return value_of_message(
        Answer,
        message,
        passage=passage_of_message(message.passage),
        source=source_value(message.source) if message.HasField("source") else None,
        size=convert.answer_size_of_number(message.size),
        shown_text=message.shown_text or message.text,  # older fronts send only the text
    )


def passage_of_message(message: answer_pb2.Passage) -> Passage:
    """Converts a passage."""
    metadata = json_format.MessageToDict(message.metadata)
    return value_of_message(Passage, message, metadata=metadata)


def source_value(message: answer_pb2.Source) -> Source:
    """Converts the source of a passage."""
    return value_of_message(Source, message, headings=tuple(message.headings))


def coverage_of_message(message: answer_pb2.Coverage) -> Coverage:
    """Converts the coverage of a search."""
    return Coverage(
        complete=message.complete,
        known=message.passages_known,
        searched=message.passages_searched,
        failed=message.passages_failed,
        shards=tuple(
            value_of_message(ShardCoverage, part, status=_status(part.status))
            for part in message.shards
        ),
    )


def _status(number: int) -> ShardStatus:
    """The status of a shard. An unknown status counts as a failure."""
    name = _name(answer_pb2.ShardCoverage.Status.items(), number).removeprefix("STATUS_")
    return ShardStatus.__members__.get(name, ShardStatus.FAILED)


def _timings(message: answer_pb2.Timings) -> Timings:
    shards = tuple(value_of_message(ShardTimings, each) for each in message.shards)
    calls = tuple(map(_call, message.calls))
    return value_of_message(Timings, message, shards=shards, calls=calls)


def _call(message: answer_pb2.ShardCall) -> ShardCall:
    kind = _name(answer_pb2.ShardCall.Kind.items(), message.kind).removeprefix("KIND_")
    outcome = _name(answer_pb2.ShardCall.Outcome.items(), message.outcome).removeprefix("OUTCOME_")
    return value_of_message(
        ShardCall,
        message,
        kind=CallKind.__members__.get(kind),
        outcome=CallOutcome.__members__.get(outcome),
        reads=tuple(value_of_message(ReadTiming, each) for each in message.reads),
    )


def _name(items: Iterable[tuple[str, int]], number: int) -> str:
    """The name of an enum's value; empty for a value that this client does not know."""
    return next((name for name, value in items if value == number), "")
