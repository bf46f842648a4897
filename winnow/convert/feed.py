"""Converts users' writes, and the results of writes, to messages of `feed.proto` and back."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from google.protobuf import struct_pb2

from winnow.convert.answer import position_of_message, positions_of_messages
from winnow.convert.by_name import choices_of, numbers_of, optional, value_of_message
from winnow.convert.lazy import LazySequence
from winnow.domain.quota import StorageQuota, StorageUse, TenantUsage
from winnow.domain.write import (
    DeletedPassages,
    DeletedTenant,
    Deletion,
    FedPassage,
    FeedSummary,
    FilteredDeletion,
    Outcome,
    Position,
    WriteResult,
)
from winnow.errors import InvalidRequestError, Violation
from winnow.passages.validation import MAX_DEPTH, is_too_deep
from winnow.v1 import answer_pb2, feed_pb2

OUTCOMES = numbers_of(Outcome, feed_pb2.WriteOutcome, "WRITE_OUTCOME_")
OUTCOME_BY_NUMBER = choices_of(OUTCOMES)
_MAX_EXACT_INTEGER = 2**53
"""Messages hold numbers as doubles, which represent every integer up to this one exactly."""


def passages_of_message(message: feed_pb2.PutRequest, tenant: str = "") -> Sequence[FedPassage]:
    """Returns a sequence that converts the passages on first use. Use it in a thread.

    The passages get `tenant`, which the key of the caller decides, not the message.
    """
    return LazySequence(len(message.passages), partial(_passages, message, tenant))


def deletions_of_message(message: feed_pb2.DeleteRequest, tenant: str = "") -> Sequence[Deletion]:
    """Returns a sequence that converts the deletions; see `passages_of_message`."""
    return LazySequence(len(message.deletions), partial(_deletions, message, tenant))


def passage_to_message(passage: FedPassage) -> feed_pb2.FedPassage:
    """Converts a passage; raises ValueError or TypeError if a message cannot represent it."""
    message = feed_pb2.FedPassage(
        id=passage.id, title=passage.title, text=passage.text, version=passage.version
    )
    if passage.metadata:
        if is_too_deep(passage.metadata):  # protobuf reports it late
            raise ValueError(f"metadata is nested deeper than {MAX_DEPTH} levels")
        message.metadata.update(dict(passage.metadata))
    return message


def deletion_to_message(deletion: Deletion) -> feed_pb2.Deletion:
    """Converts a deletion; raises ValueError or TypeError if a message cannot represent it."""
    return feed_pb2.Deletion(id=deletion.id, version=deletion.version)


def results_to_messages(
    results: Iterable[WriteResult], index: str = ""
) -> list[feed_pb2.WriteResult]:
    return [
        feed_pb2.WriteResult(
            id=item.id,
            outcome=OUTCOMES[item.outcome],
            position=_position_to_message(item.position, index),
            truncated=item.truncated,
        )
        for item in results
    ]


def storage_to_message(storage: StorageUse | None) -> feed_pb2.StorageUse | None:
    """Converts what a tenant has stored; None if it is not known."""
    if storage is None:
        return None
    used, quota = storage.used, storage.quota
    return feed_pb2.StorageUse(
        passages=used.passages,
        max_passages=quota.passages,
        bytes=used.bytes,
        max_bytes=quota.bytes,
    )


def storage_of_message(message: Any) -> StorageUse | None:
    """Converts what a tenant has stored, of a response of writes; None if it is left out."""
    if not message.HasField("storage"):
        return None
    storage = message.storage
    quota = StorageQuota(optional(storage, "max_passages"), optional(storage, "max_bytes"))
    return StorageUse(TenantUsage(storage.passages, storage.bytes), quota)


def results_of_messages(messages: Iterable[feed_pb2.WriteResult]) -> tuple[WriteResult, ...]:
    """Converts the results of writes.

    An outcome unknown to this version becomes UNCHANGED, because every outcome means that the write
    is durable.
    """
    return tuple(
        WriteResult(
            item.id,
            OUTCOME_BY_NUMBER.get(item.outcome, Outcome.UNCHANGED),
            position_of_message(item.position),
            item.truncated,
        )
        for item in messages
    )


def summary_to_message(
    summary: FeedSummary, index: str = "", storage: StorageUse | None = None
) -> feed_pb2.FeedSummary:
    """Converts the summary of the writes of a stream to an index, which has a name or none."""
    return feed_pb2.FeedSummary(
        stored=summary.stored,
        unchanged=summary.unchanged,
        outdated=summary.outdated,
        positions=[_position_to_message(each, index) for each in summary.positions],
        storage=storage_to_message(storage),
    )


def filtered_deletion_of_message(message: feed_pb2.DeleteWhereRequest) -> FilteredDeletion:
    """Converts a request; raises InvalidRequestError if a position has no shard."""
    violations: list[Violation] = []
    after = positions_of_messages(message.after, violations)
    if violations:
        raise InvalidRequestError(*violations)
    return FilteredDeletion(
        where=message.filter, document=message.document, dry_run=message.dry_run, after=after
    )


def deleted_to_message(deleted: DeletedPassages, index: str = "") -> feed_pb2.DeleteWhereResponse:
    """Converts the result of a deletion by filter from an index, which has a name or none."""
    return feed_pb2.DeleteWhereResponse(
        matched=deleted.matched,
        deleted=deleted.deleted,
        complete=deleted.complete,
        positions=[_position_to_message(each, index) for each in deleted.positions],
    )


def deleted_tenant_to_message(
    deleted: DeletedTenant, index: str = ""
) -> feed_pb2.DeleteTenantResponse:
    """Converts the result of the deletion of a tenant from an index, which has a name or none."""
    return feed_pb2.DeleteTenantResponse(
        passages=deleted.passages,
        positions=[_position_to_message(each, index) for each in deleted.positions],
    )


def deleted_tenant_of_message(message: feed_pb2.DeleteTenantResponse) -> DeletedTenant:
    """Converts the result of the deletion of a tenant."""
    return DeletedTenant(
        passages=message.passages, positions=tuple(map(position_of_message, message.positions))
    )


def deleted_of_message(message: feed_pb2.DeleteWhereResponse) -> DeletedPassages:
    """Converts the result of a deletion by filter."""
    return value_of_message(
        DeletedPassages,
        message,
        positions=tuple(map(position_of_message, message.positions)),
    )


def _passages(message: feed_pb2.PutRequest, tenant: str) -> list[FedPassage]:
    return [
        value_of_message(FedPassage, item, metadata=_object_of_struct(item.metadata), tenant=tenant)
        for item in message.passages
    ]


def _deletions(message: feed_pb2.DeleteRequest, tenant: str) -> list[Deletion]:
    return [value_of_message(Deletion, item, tenant=tenant) for item in message.deletions]


def _position_to_message(position: Position, index: str) -> answer_pb2.Position:
    return answer_pb2.Position(shard=position.shard, sequence=position.sequence, index=index)


def _object_of_struct(message: struct_pb2.Struct, depth: int = 1) -> dict[str, Any]:
    return {name: _json_value(value, depth + 1) for name, value in message.fields.items()}


def _json_value(message: struct_pb2.Value, depth: int) -> Any:
    """Converts a JSON value. A number without a fraction becomes an integer again.

    What is nested deeper than `MAX_DEPTH` levels is left out: it is refused for the first level too
    many, and could exceed Python's limit of recursion.
    """
    if depth > MAX_DEPTH:
        return None
    kind = message.WhichOneof("kind")
    if kind == "number_value":
        number = message.number_value
        return int(number) if number.is_integer() and abs(number) <= _MAX_EXACT_INTEGER else number
    if kind == "list_value":
        return [_json_value(item, depth + 1) for item in message.list_value.values]
    if kind == "struct_value":
        return _object_of_struct(message.struct_value, depth)
    return getattr(message, kind) if kind in ("string_value", "bool_value") else None
