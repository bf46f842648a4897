"""Converts calls for the passages of a shard to messages of `shard_passage.proto` and back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, TypeAlias, TypeVar

from google.protobuf.message import Message

from winnow.convert.by_name import optional, same_fields, value_of_message
from winnow.domain.listing import (
    ALL_FIELDS,
    CountRequest,
    DocumentListing,
    DocumentPage,
    FoundPassages,
    PassageCount,
    PassageListing,
    PassageLookup,
    PassagePage,
    SeenWrites,
    SelectedFields,
    ShardRequest,
    StoredDocument,
    StoredTenant,
    TenantListing,
    TenantPage,
    TenantWordCounts,
    TenantWordsRequest,
)
from winnow.domain.passage import Passage
from winnow.errors import UnavailableError
from winnow.v1 import passage_pb2, shard_passage_pb2, shard_pb2

_FieldNumber: TypeAlias = "passage_pb2.PassageField.ValueType"
_NUMBERS: dict[str, _FieldNumber] = {
    "title": passage_pb2.PASSAGE_FIELD_TITLE,
    "text": passage_pb2.PASSAGE_FIELD_TEXT,
    "metadata": passage_pb2.PASSAGE_FIELD_METADATA,
}
_MESSAGES: Mapping[type[ShardRequest[Any]], Callable[..., Message]] = {
    PassageListing: shard_passage_pb2.ListShardPassagesRequest,
    PassageLookup: shard_passage_pb2.GetShardPassagesRequest,
    CountRequest: shard_passage_pb2.CountShardPassagesRequest,
    DocumentListing: shard_passage_pb2.ListShardDocumentsRequest,
    TenantListing: shard_passage_pb2.ListShardTenantsRequest,
    TenantWordsRequest: shard_passage_pb2.CountShardWordsRequest,
}
Request = TypeVar("Request", bound=ShardRequest[Any])


def fields_to_numbers(fields: SelectedFields) -> list[_FieldNumber]:
    """Converts the selected fields; an empty list stands for all fields."""
    if fields == ALL_FIELDS:
        return []
    selected = [each for name, each in _NUMBERS.items() if getattr(fields, name)]
    return [passage_pb2.PASSAGE_FIELD_ID, *selected]


def fields_of_numbers(numbers: Sequence[_FieldNumber]) -> SelectedFields:
    """Converts the selected fields; fields that this version does not know are ignored."""
    if not numbers:
        return ALL_FIELDS
    return SelectedFields(**{name: each in numbers for name, each in _NUMBERS.items()})


def request_to_message(request: ShardRequest[Any], shard: int) -> Message:
    """Converts a request; `shard` is the number of the shard that it is for."""
    excluded = ("after", "client", *(("tenant",) if isinstance(request, TenantListing) else ()))
    values = same_fields(request, excluded)
    values["shard"] = shard_pb2.RequestedShard(shard=shard, after=request.after)
    if "where" in values:
        values["filter"] = values.pop("where")
    if "fields" in values:
        values["fields"] = fields_to_numbers(values["fields"])
    return _MESSAGES[type(request)](**values)


def request_of_message(kind: type[Request], message: Any, client: str) -> Request:
    """Converts a message to a request of type `kind`; `client` names the caller."""
    values: dict[str, Any] = {"after": message.shard.after, "client": client}
    names = message.DESCRIPTOR.fields_by_name
    if "filter" in names:
        values["where"] = message.filter
    if "fields" in names:
        values["fields"] = fields_of_numbers(message.fields)
    for name in ("ids", "token_ids"):
        if name in names:
            values[name] = tuple(getattr(message, name))
    if "tenant" not in names:
        values["tenant"] = ""
    return value_of_message(kind, message, **values)


def page_to_message(
    page: PassagePage, fields: SelectedFields
) -> shard_passage_pb2.ListShardPassagesResponse:
    return shard_passage_pb2.ListShardPassagesResponse(
        passages=_columns(page.passages, fields), complete=page.complete, seen=_seen(page)
    )


def page_of_message(message: shard_passage_pb2.ListShardPassagesResponse) -> PassagePage:
    """Converts a page; raises UnavailableError if it is invalid."""
    passages = _passages(message.passages)
    _check(message.complete or passages)
    return PassagePage(passages=passages, complete=message.complete, **_sequence_and_log(message))


def found_to_message(
    found: FoundPassages, fields: SelectedFields
) -> shard_passage_pb2.GetShardPassagesResponse:
    return shard_passage_pb2.GetShardPassagesResponse(
        passages=_columns(found.passages, fields), looked_up=found.looked_up, seen=_seen(found)
    )


def found_of_message(message: shard_passage_pb2.GetShardPassagesResponse) -> FoundPassages:
    """Converts the result of a lookup; raises UnavailableError if it is invalid."""
    _check(message.looked_up)
    return FoundPassages(
        passages=_passages(message.passages),
        looked_up=message.looked_up,
        **_sequence_and_log(message),
    )


def count_to_message(count: PassageCount) -> shard_passage_pb2.CountShardPassagesResponse:
    return shard_passage_pb2.CountShardPassagesResponse(
        passages=count.passages, content_bytes=count.content_bytes, seen=_seen(count)
    )


def count_of_message(message: shard_passage_pb2.CountShardPassagesResponse) -> PassageCount:
    return PassageCount(
        passages=message.passages,
        content_bytes=optional(message, "content_bytes"),
        **_sequence_and_log(message),
    )


def tenants_to_message(page: TenantPage) -> shard_passage_pb2.ListShardTenantsResponse:
    return shard_passage_pb2.ListShardTenantsResponse(
        tenants=tenants_to_messages(page.tenants), complete=page.complete, seen=_seen(page)
    )


def tenants_of_message(message: shard_passage_pb2.ListShardTenantsResponse) -> TenantPage:
    """Converts a page of tenants; raises UnavailableError if it is invalid."""
    tenants = tenants_of_messages(message.tenants)
    _check(message.complete or tenants)
    return TenantPage(tenants=tenants, complete=message.complete, **_sequence_and_log(message))


def words_to_message(counts: TenantWordCounts) -> shard_passage_pb2.CountShardWordsResponse:
    return shard_passage_pb2.CountShardWordsResponse(
        containing=counts.containing,
        passages=counts.passages,
        tokens=counts.tokens,
        seen=_seen(counts),
    )


def words_of_message(message: shard_passage_pb2.CountShardWordsResponse) -> TenantWordCounts:
    """Converts counts; raises UnavailableError if they are invalid."""
    _check(max(message.containing, default=0) <= message.passages)
    return TenantWordCounts(
        containing=tuple(message.containing),
        passages=message.passages,
        tokens=message.tokens,
        **_sequence_and_log(message),
    )


def tenants_to_messages(tenants: Iterable[StoredTenant]) -> list[passage_pb2.StoredTenant]:
    return [passage_pb2.StoredTenant(**same_fields(each)) for each in tenants]


def tenants_of_messages(messages: Iterable[passage_pb2.StoredTenant]) -> tuple[StoredTenant, ...]:
    return tuple(value_of_message(StoredTenant, each) for each in messages)


def documents_to_message(page: DocumentPage) -> shard_passage_pb2.ListShardDocumentsResponse:
    return shard_passage_pb2.ListShardDocumentsResponse(
        documents=documents_to_messages(page.documents), complete=page.complete, seen=_seen(page)
    )


def documents_of_message(message: shard_passage_pb2.ListShardDocumentsResponse) -> DocumentPage:
    """Converts a page of documents; raises UnavailableError if it is invalid."""
    documents = documents_of_messages(message.documents)
    _check(message.complete or documents)
    return DocumentPage(
        documents=documents, complete=message.complete, **_sequence_and_log(message)
    )


def documents_to_messages(
    documents: Iterable[StoredDocument],
) -> list[passage_pb2.StoredDocument]:
    return [passage_pb2.StoredDocument(**same_fields(each)) for each in documents]


def documents_of_messages(
    messages: Iterable[passage_pb2.StoredDocument],
) -> tuple[StoredDocument, ...]:
    return tuple(value_of_message(StoredDocument, each) for each in messages)


def _columns(
    passages: Sequence[Passage], fields: SelectedFields
) -> shard_passage_pb2.PassageColumns:
    return shard_passage_pb2.PassageColumns(
        ids=[each.id for each in passages],
        titles=[each.title for each in passages] if fields.title else (),
        texts=[each.text for each in passages] if fields.text else (),
        metadata=[each.metadata for each in passages] if fields.metadata else (),
    )


def _passages(columns: shard_passage_pb2.PassageColumns) -> tuple[Passage, ...]:
    """Converts columns to passages; raises UnavailableError if their lengths differ."""
    others = (columns.titles, columns.texts, columns.metadata)
    _check(all(len(each) in (0, len(columns.ids)) for each in others))
    values = (each or repeat("", len(columns.ids)) for each in others)
    return tuple(map(Passage, columns.ids, *values))


def _check(is_valid: object) -> None:
    if not is_valid:
        raise UnavailableError("a node sent an invalid reply")


def _seen(result: SeenWrites) -> shard_passage_pb2.SeenWrites:
    return shard_passage_pb2.SeenWrites(sequence=result.sequence, log_id=result.log_id)


def _sequence_and_log(message: Any) -> dict[str, Any]:
    return {"sequence": message.seen.sequence, "log_id": message.seen.log_id}
