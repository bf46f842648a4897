"""What users feed and are told: domain values to messages of `feed.proto` and back."""

from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import struct_pb2

from winnow.domain.write import Deletion, FedPassage, FeedSummary, Outcome, Position, WriteResult
from winnow.v1 import answer_pb2, feed_pb2

_OUTCOMES: Mapping[Outcome, feed_pb2.WriteOutcome.ValueType] = {
    Outcome.STORED: feed_pb2.WRITE_OUTCOME_STORED,
    Outcome.UNCHANGED: feed_pb2.WRITE_OUTCOME_UNCHANGED,
    Outcome.OUTDATED: feed_pb2.WRITE_OUTCOME_OUTDATED,
}
_OUTCOMES_BACK: Mapping[int, Outcome] = {message: each for each, message in _OUTCOMES.items()}
_EXACT = 2**53
"""Whole numbers up to this are the same as doubles, which is all that a message has."""


def passages_of_message(message: feed_pb2.PutRequest) -> list[FedPassage]:
    """The passages as their caller sent them."""
    return [
        FedPassage(
            each.id,
            each.title,
            each.text,
            _object(each.metadata),
            each.version if each.HasField("version") else None,
        )
        for each in message.passages
    ]


def deletions_of_message(message: feed_pb2.DeleteRequest) -> list[Deletion]:
    """The deletions as their caller sent them."""
    return [
        Deletion(each.id, each.version if each.HasField("version") else None)
        for each in message.deletions
    ]


def passage_to_message(passage: FedPassage) -> feed_pb2.FedPassage:
    """A passage as it travels; raises ValueError or TypeError if no message can hold it."""
    message = feed_pb2.FedPassage(
        id=passage.id, title=passage.title, text=passage.text, version=passage.version
    )
    if passage.metadata:
        message.metadata.update(dict(passage.metadata))
    return message


def deletion_to_message(deletion: Deletion) -> feed_pb2.Deletion:
    """A deletion as it travels; raises as `passage_to_message` does."""
    return feed_pb2.Deletion(id=deletion.id, version=deletion.version)


def results_to_messages(results: Iterable[WriteResult]) -> list[feed_pb2.WriteResult]:
    """What became of writes."""
    return [
        feed_pb2.WriteResult(
            id=each.id,
            outcome=_OUTCOMES[each.outcome],
            position=_position_to_message(each.position),
            truncated=each.truncated,
        )
        for each in results
    ]


def results_of_messages(messages: Iterable[feed_pb2.WriteResult]) -> tuple[WriteResult, ...]:
    """What became of writes. An outcome that a newer server invented is durable like all others."""
    return tuple(
        WriteResult(
            each.id,
            _OUTCOMES_BACK.get(each.outcome, Outcome.UNCHANGED),
            Position(each.position.shard, each.position.sequence),
            each.truncated,
        )
        for each in messages
    )


def summary_to_message(summary: FeedSummary) -> feed_pb2.FeedSummary:
    """What became of the writes of a stream."""
    return feed_pb2.FeedSummary(
        stored=summary.stored,
        unchanged=summary.unchanged,
        outdated=summary.outdated,
        positions=map(_position_to_message, summary.positions),
    )


def _position_to_message(position: Position) -> answer_pb2.Position:
    return answer_pb2.Position(shard=position.shard, sequence=position.sequence)


def _object(message: struct_pb2.Struct) -> dict[str, Any]:
    return {name: _value(value) for name, value in message.fields.items()}


def _value(message: struct_pb2.Value) -> Any:
    """As JSON has it. A number without a fraction is an integer again, as it was written."""
    kind = message.WhichOneof("kind")
    if kind == "number_value":
        number = message.number_value
        return int(number) if number.is_integer() and abs(number) <= _EXACT else number
    if kind == "list_value":
        return [_value(each) for each in message.list_value.values]
    if kind == "struct_value":
        return _object(message.struct_value)
    return getattr(message, kind) if kind in ("string_value", "bool_value") else None
