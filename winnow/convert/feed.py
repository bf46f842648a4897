"""Writes of users and their results: domain values to messages of `feed.proto` and back."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from google.protobuf import struct_pb2

from winnow.convert.by_name import choices_of, numbers_of, value_of_message
from winnow.convert.lazy import LazySequence
from winnow.domain.write import Deletion, FedPassage, FeedSummary, Outcome, Position, WriteResult
from winnow.v1 import answer_pb2, feed_pb2

OUTCOMES = numbers_of(Outcome, feed_pb2.WriteOutcome, "WRITE_OUTCOME_")
OUTCOMES_BACK = choices_of(OUTCOMES)
_EXACT = 2**53
"""Whole numbers up to this are the same as doubles, which is all that a message has."""


def passages_of_message(message: feed_pb2.PutRequest) -> Sequence[FedPassage]:
    """The passages as their caller sent them. Read them in a thread: they are converted there."""
    return LazySequence(len(message.passages), partial(_passages, message))


def deletions_of_message(message: feed_pb2.DeleteRequest) -> Sequence[Deletion]:
    """The deletions as their caller sent them. Read them in a thread: they are converted there."""
    return LazySequence(len(message.deletions), partial(_deletions, message))


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
    return [
        feed_pb2.WriteResult(
            id=each.id,
            outcome=OUTCOMES[each.outcome],
            position=_position_to_message(each.position),
            truncated=each.truncated,
        )
        for each in results
    ]


def results_of_messages(messages: Iterable[feed_pb2.WriteResult]) -> tuple[WriteResult, ...]:
    """Converts the results of writes.

    An outcome unknown to this version becomes UNCHANGED: every outcome means that the write is
    durable.
    """
    return tuple(
        WriteResult(
            each.id,
            OUTCOMES_BACK.get(each.outcome, Outcome.UNCHANGED),
            Position(each.position.shard, each.position.sequence),
            each.truncated,
        )
        for each in messages
    )


def summary_to_message(summary: FeedSummary) -> feed_pb2.FeedSummary:
    """The summary of the writes of a stream."""
    return feed_pb2.FeedSummary(
        stored=summary.stored,
        unchanged=summary.unchanged,
        outdated=summary.outdated,
        positions=map(_position_to_message, summary.positions),
    )


def _passages(message: feed_pb2.PutRequest) -> list[FedPassage]:
    return [
        value_of_message(FedPassage, each, metadata=_object(each.metadata))
        for each in message.passages
    ]


def _deletions(message: feed_pb2.DeleteRequest) -> list[Deletion]:
    return [value_of_message(Deletion, each) for each in message.deletions]


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
