"""Converts calls for the passages of a shard to messages of `shard_passage.proto` and back."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, TypeAlias

from winnow.convert.by_name import same_fields, value_of_message
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
    StoredDocument,
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


def listing_to_message(
    request: PassageListing, shard: int
) -> shard_passage_pb2.ListShardPassagesRequest:
    return shard_passage_pb2.ListShardPassagesRequest(
        shard=_shard(shard, request.after),
        filter=request.where,
        after_id=request.after_id,
        limit=request.limit,
        fields=fields_to_numbers(request.fields),
    )


def listing_of_message(
    message: shard_passage_pb2.ListShardPassagesRequest, client: str
) -> PassageListing:
    return PassageListing(
        limit=message.limit,
        where=message.filter,
        after_id=message.after_id,
        fields=fields_of_numbers(message.fields),
        after=message.shard.after,
        client=client,
    )


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
    return PassagePage(passages=passages, complete=message.complete, **_seen_of(message))


def lookup_to_message(
    request: PassageLookup, shard: int
) -> shard_passage_pb2.GetShardPassagesRequest:
    return shard_passage_pb2.GetShardPassagesRequest(
        shard=_shard(shard, request.after),
        ids=request.ids,
        fields=fields_to_numbers(request.fields),
    )


def lookup_of_message(
    message: shard_passage_pb2.GetShardPassagesRequest, client: str
) -> PassageLookup:
    return PassageLookup(
        ids=tuple(message.ids),
        fields=fields_of_numbers(message.fields),
        after=message.shard.after,
        client=client,
    )


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
        passages=_passages(message.passages), looked_up=message.looked_up, **_seen_of(message)
    )


def count_request_to_message(
    request: CountRequest, shard: int
) -> shard_passage_pb2.CountShardPassagesRequest:
    return shard_passage_pb2.CountShardPassagesRequest(
        shard=_shard(shard, request.after), filter=request.where
    )


def count_request_of_message(
    message: shard_passage_pb2.CountShardPassagesRequest, client: str
) -> CountRequest:
    return CountRequest(where=message.filter, after=message.shard.after, client=client)


def count_to_message(count: PassageCount) -> shard_passage_pb2.CountShardPassagesResponse:
    return shard_passage_pb2.CountShardPassagesResponse(passages=count.passages, seen=_seen(count))


def count_of_message(message: shard_passage_pb2.CountShardPassagesResponse) -> PassageCount:
    return PassageCount(passages=message.passages, **_seen_of(message))


def document_listing_to_message(
    request: DocumentListing, shard: int
) -> shard_passage_pb2.ListShardDocumentsRequest:
    return shard_passage_pb2.ListShardDocumentsRequest(
        shard=_shard(shard, request.after),
        filter=request.where,
        after_document=request.after_document,
        limit=request.limit,
    )


def document_listing_of_message(
    message: shard_passage_pb2.ListShardDocumentsRequest, client: str
) -> DocumentListing:
    return DocumentListing(
        limit=message.limit,
        where=message.filter,
        after_document=message.after_document,
        after=message.shard.after,
        client=client,
    )


def documents_to_message(page: DocumentPage) -> shard_passage_pb2.ListShardDocumentsResponse:
    return shard_passage_pb2.ListShardDocumentsResponse(
        documents=documents_to_messages(page.documents), complete=page.complete, seen=_seen(page)
    )


def documents_of_message(message: shard_passage_pb2.ListShardDocumentsResponse) -> DocumentPage:
    """Converts a page of documents; raises UnavailableError if it is invalid."""
    documents = documents_of_messages(message.documents)
    _check(message.complete or documents)
    return DocumentPage(documents=documents, complete=message.complete, **_seen_of(message))


def documents_to_messages(
    documents: Iterable[StoredDocument],
) -> list[passage_pb2.StoredDocument]:
    return [passage_pb2.StoredDocument(**same_fields(each)) for each in documents]


def documents_of_messages(
    messages: Iterable[passage_pb2.StoredDocument],
) -> tuple[StoredDocument, ...]:
    return tuple(value_of_message(StoredDocument, each) for each in messages)


def _shard(shard: int, after: int) -> shard_pb2.RequestedShard:
    return shard_pb2.RequestedShard(shard=shard, after=after)


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


def _seen_of(message: Any) -> dict[str, Any]:
    return {"sequence": message.seen.sequence, "log_id": message.seen.log_id}
