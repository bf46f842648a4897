"""Calls for passages of an index, with plain values: search, lookup, pages, counts, documents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from winnow.client.calls import Call
from winnow.client.replies import Coverage, Passage
from winnow.client.reply_messages import coverage_of_message, passage_of_message, source_value
from winnow.client.requests import Request, build_request, listed
from winnow.convert.by_name import optional, value_of_message
from winnow.convert.shard_passage import documents_of_messages, tenants_of_messages
from winnow.domain.passage_request import DocumentBatch, TenantResults
from winnow.domain.question import PartialResults, Retriever
from winnow.domain.quota import StorageQuota, StorageUse, TenantUsage
from winnow.domain.source import Source
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, Violation, invalid_field
from winnow.quoting import quoted
from winnow.v1 import passage_pb2, passage_pb2_grpc

PassageFieldName = Literal["id", "title", "text", "metadata"]
"""A field of a passage. The id is always returned."""
MAX_PAGE = 1_000
"""Maximum number of passages or documents of a page."""
_MAX_IDS, _MAX_IDS_BYTES = 100, 12_000
"""Maximum number and size of the ids of one call."""


class SearchOptions(TypedDict, total=False):
    """Options of a search. The front node chooses the value of an option that is None."""

    passages: int | None
    """Number of passages to return, 1 to 100."""
    retriever: Retriever | Literal["dense", "sparse", "hybrid"] | None
    """Whether to find passages by their vectors, by words, or by both."""
    partial_results: PartialResults | Literal["allow", "forbid"] | None
    """Whether to return passages of the other shards if a shard fails."""
    where: str | None
    """A filter on the metadata of passages, such as 'year >= 2010 and lang = "en"'."""
    after: Sequence[Position] | None
    """Positions of writes that the passages must reflect, as `put` and `delete` return them."""
    fields: Sequence[PassageFieldName] | None
    """Fields of the passages to return; None for all."""


class ListOptions(TypedDict, total=False):
    """Options of a page of passages."""

    where: str | None
    """A filter on the metadata of passages; None for all passages."""
    after: Sequence[Position] | None
    """Positions of writes that the page must reflect, as `put` and `delete` return them."""
    fields: Sequence[PassageFieldName] | None
    """Fields of the passages to return; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPassage:
    """A passage that was found for a question."""

    passage: Passage
    score: float
    """Negative `hybrid_distance`, or `words` if the retriever is sparse: higher is better."""
    distance: float
    """Squared Euclidean distance between question and passage: 0 to 4, lower is nearer."""
    hybrid_distance: float
    """The distance, reduced by the weight of the question's words in the passage."""
    words: float
    """BM25 of the question's words in the passage: higher is better."""
    highlights: tuple[tuple[int, int], ...]
    """Ranges of the text with words of the question, in code points with an exclusive end."""
    shard: int
    source: Source | None = None
    """The document of the passage; None if its metadata names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReply:
    """The passages that were found for a question."""

    passages: tuple[FoundPassage, ...]
    """Passages, the best first."""
    coverage: Coverage
    request_id: str
    question_truncated: bool = False
    """Whether the end of the question was cut off, because the encoder has a maximum length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageBatch:
    """A page of passages, in the order of their ids."""

    passages: tuple[Passage, ...]
    next_page_token: str
    """Token of the next page; empty after the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The result of one call of a lookup by ids."""

    passages: tuple[Passage, ...] = ()
    remaining_ids: Sequence[str] = field(default_factory=tuple)
    """Ids that did not fit into the reply."""


def search_call(question: str, options: Mapping[str, Any]) -> Call[SearchReply]:
    """The call that searches passages.

    Raises InvalidRequestError if an option is unknown or has the wrong type. The front node checks
    limits.
    """
    known = SearchOptions.__annotations__
    if unknown := [name for name in options if name not in known]:
        raise InvalidRequestError(Violation(unknown[0], "is not an option of a search"))
    request = _message(passage_pb2.SearchPassagesRequest, question=question, **options)
    return _call("SearchPassages", request, _search_reply)


def lookup_calls(
    ids: Sequence[str], fields: Sequence[PassageFieldName] | None
) -> Iterator[Call[Lookup]]:
    """Yields the calls that look up passages, a part of the ids each. Raises as `search_call`."""
    for part in id_batches(ids):
        request = _message(passage_pb2.GetPassagesRequest, ids=part, fields=fields)
        yield _call("GetPassages", request, _lookup)


def distinct_ids(ids: str | Sequence[str]) -> list[str]:
    """Returns each id once; raises InvalidRequestError if one is not a text."""
    found = [ids] if isinstance(ids, str) else list(listed("ids", ids))
    if wrong := [each for each in found if not isinstance(each, str)]:
        raise invalid_field(
            "ids", f"an id is not a text, but of the type {type(wrong[0]).__name__}"
        )
    return list(dict.fromkeys(found))


def id_batches(ids: Sequence[str]) -> Iterator[list[str]]:
    """Cuts ids into parts that fit into a request."""
    part: list[str] = []
    size = 0
    for each in ids:
        bytes_ = len(str(each).encode(errors="replace"))
        if part and (len(part) == _MAX_IDS or size + bytes_ > _MAX_IDS_BYTES):
            yield part
            part, size = [], 0
        part.append(each)
        size += bytes_
    if part:
        yield part


def page_call(
    page_size: int | None, page_token: str, options: Mapping[str, Any]
) -> Call[PassageBatch]:
    """The call that returns a page of passages. Raises as `search_call`."""
    known = ListOptions.__annotations__
    if unknown := [name for name in options if name not in known]:
        raise InvalidRequestError(Violation(unknown[0], "is not an option of a listing"))
    request = _message(
        passage_pb2.ListPassagesRequest, page_size=page_size, page_token=page_token, **options
    )
    return _call("ListPassages", request, _page)


def count_call(where: str | None, after: Sequence[Position] | None) -> Call[int]:
    """The call that counts passages. Raises as `search_call`."""
    request = _message(passage_pb2.CountPassagesRequest, where=where, after=after)
    return _call("CountPassages", request, lambda reply: int(reply.passages))


def documents_call(
    page_token: str, where: str | None, after: Sequence[Position] | None
) -> Call[DocumentBatch]:
    """The call that returns a page of documents. Raises as `search_call`."""
    request = _message(
        passage_pb2.ListDocumentsRequest,
        page_size=MAX_PAGE,
        page_token=page_token,
        where=where,
        after=after,
    )
    return _call("ListDocuments", request, _documents)


def tenants_call(page_token: str) -> Call[TenantResults]:
    """The call that returns a page of tenants."""
    request = _message(passage_pb2.ListTenantsRequest, page_size=MAX_PAGE, page_token=page_token)
    return _call("ListTenants", request, _tenants)


def usage_call(tenant: str | None, after: Sequence[Position] | None) -> Call[StorageUse]:
    """The call that returns what a tenant stores. Raises as `search_call`."""
    request = _message(passage_pb2.GetTenantUsageRequest, tenant=tenant, after=after)
    return _call("GetTenantUsage", request, _usage)


def _call(method: str, request: Any, result: Any) -> Call[Any]:
    return Call(passage_pb2_grpc.PassageServiceStub, method, request, result)


def _message(kind: type[Request], **values: Any) -> Request:
    """Builds a request; values that are None are left out."""
    return build_request(kind, values, {"fields": _field_numbers})


def _field_numbers(names: Sequence[str]) -> "list[passage_pb2.PassageField.ValueType]":
    known = passage_pb2.PassageField.keys()
    numbers = []
    for name in [names] if isinstance(names, str) else names:
        full = f"PASSAGE_FIELD_{str(name).upper()}"
        if full not in known[1:]:
            raise ValueError(f"{quoted(str(name))} is none of id, title, text, metadata")
        numbers.append(passage_pb2.PassageField.Value(full))
    return numbers or [passage_pb2.PASSAGE_FIELD_ID]


def _search_reply(message: passage_pb2.SearchPassagesResponse) -> SearchReply:
    return SearchReply(
        passages=tuple(map(_found, message.passages)),
        coverage=coverage_of_message(message.coverage),
        request_id=message.request_id,
        question_truncated=message.question_truncated,
    )


def _found(message: passage_pb2.FoundPassage) -> FoundPassage:
    return value_of_message(
        FoundPassage,
        message,
        passage=passage_of_message(message.passage),
        highlights=tuple((each.start, each.end) for each in message.highlights),
        source=source_value(message.source) if message.HasField("source") else None,
    )


def _lookup(message: passage_pb2.GetPassagesResponse) -> Lookup:
    return Lookup(
        passages=tuple(map(passage_of_message, message.passages)),
        remaining_ids=tuple(message.remaining_ids),
    )


def _page(message: passage_pb2.ListPassagesResponse) -> PassageBatch:
    passages = tuple(map(passage_of_message, message.passages))
    return PassageBatch(passages=passages, next_page_token=message.next_page_token)


def _documents(message: passage_pb2.ListDocumentsResponse) -> DocumentBatch:
    documents = documents_of_messages(message.documents)
    return DocumentBatch(documents=documents, next_page_token=message.next_page_token)


def _tenants(message: passage_pb2.ListTenantsResponse) -> TenantResults:
    tenants = tenants_of_messages(message.tenants)
    return TenantResults(tenants=tenants, next_page_token=message.next_page_token)


def _usage(message: passage_pb2.GetTenantUsageResponse) -> StorageUse:
    quota = StorageQuota(optional(message, "max_passages"), optional(message, "max_bytes"))
    return StorageUse(TenantUsage(message.passages, message.bytes), quota)
