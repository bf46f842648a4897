"""Converts users' calls for passages to messages of `passage.proto` and back."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from google.protobuf.message import Message

from winnow.convert import answer
from winnow.convert.by_name import optional
from winnow.convert.shard_passage import (
    documents_to_messages,
    fields_of_numbers,
    tenants_to_messages,
)
from winnow.domain.listing import SelectedFields
from winnow.domain.passage import Passage
from winnow.domain.passage_request import (
    DocumentBatch,
    PassageResults,
    PassagesById,
    PassageSearchResult,
    RankedPassage,
    TenantResults,
)
from winnow.errors import InvalidRequestError, Violation
from winnow.v1 import passage_pb2

Request = TypeVar("Request")


def request_of_message(kind: type[Request], message: Message) -> Request:
    """Converts a message to a request of type `kind`.

    Raises InvalidRequestError, which names the fields with unknown values.
    """
    violations: list[Violation] = []
    values: dict[str, Any] = {}
    for name in message.DESCRIPTOR.fields_by_name:
        value = optional(message, name)
        converter = _CONVERTERS.get(name)
        own = "where" if name == "filter" else name
        values[own] = value if converter is None else converter(value, violations)
    if violations:
        raise InvalidRequestError(*violations)
    return kind(**values)


def search_to_message(
    result: PassageSearchResult, request_id: str
) -> passage_pb2.SearchPassagesResponse:
    """Converts a result. Call it in a thread: metadata takes up to half a millisecond per KB."""
    return passage_pb2.SearchPassagesResponse(
        passages=map(_ranked_to_message, result.passages),
        coverage=answer.coverage_to_message(result.coverage),
        request_id=request_id,
        question_truncated=result.question_truncated,
    )


def found_to_message(found: PassagesById, request_id: str) -> passage_pb2.GetPassagesResponse:
    """Converts passages. Call it in a thread, as `search_to_message`."""
    return passage_pb2.GetPassagesResponse(
        passages=map(answer.passage_to_message, found.passages),
        missing_ids=found.missing_ids,
        remaining_ids=found.remaining_ids,
        request_id=request_id,
    )


def page_to_message(page: PassageResults, request_id: str) -> passage_pb2.ListPassagesResponse:
    """Converts a page. Call it in a thread, as `search_to_message`."""
    return passage_pb2.ListPassagesResponse(
        passages=map(answer.passage_to_message, page.passages),
        next_page_token=page.next_page_token,
        request_id=request_id,
    )


def exported_to_message(page: PassageResults) -> passage_pb2.ExportPassagesResponse:
    """Converts a page of an export. Call it in a thread, as `search_to_message`."""
    return passage_pb2.ExportPassagesResponse(
        passages=map(answer.passage_to_message, page.passages),
        next_page_token=page.next_page_token,
    )


def page_to_lines(page: PassageResults) -> bytes:
    """Converts a page to JSON lines, as `winnow index build --passages` reads them.

    Call it in a thread, as `search_to_message`.
    """
    return b"".join(passage_to_line(each) for each in page.passages)


def passage_to_line(passage: Passage) -> bytes:
    """Converts a passage to a line of JSON."""
    fields = {"id": passage.id, "title": passage.title, "text": passage.text}
    if passage.metadata:
        fields["metadata"] = json.loads(passage.metadata)
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def documents_to_message(page: DocumentBatch, request_id: str) -> passage_pb2.ListDocumentsResponse:
    """Converts a page of documents."""
    return passage_pb2.ListDocumentsResponse(
        documents=documents_to_messages(page.documents),
        next_page_token=page.next_page_token,
        request_id=request_id,
    )


def tenants_to_message(page: TenantResults, request_id: str) -> passage_pb2.ListTenantsResponse:
    """Converts a page of tenants."""
    return passage_pb2.ListTenantsResponse(
        tenants=tenants_to_messages(page.tenants),
        next_page_token=page.next_page_token,
        request_id=request_id,
    )


def _ranked_to_message(ranked: RankedPassage) -> passage_pb2.FoundPassage:
    hit = ranked.hit
    return passage_pb2.FoundPassage(
        passage=answer.passage_to_message(ranked.passage),
        score=ranked.score,
        distance=hit.distance,
        hybrid_distance=hit.hybrid_distance,
        words=hit.words,
        highlights=[
            passage_pb2.Highlight(start=start, end=end) for start, end in ranked.highlights
        ],
        shard=ranked.shard,
        source=answer.source_to_message(ranked.passage),
    )


def _fields(numbers: Sequence[Any], violations: list[Violation]) -> SelectedFields:
    known = passage_pb2.PassageField.values()
    violations += [
        Violation("fields", f"{number} is not a known value")
        for number in numbers
        if not number or number not in known
    ]
    return fields_of_numbers(numbers)


_CONVERTERS: Mapping[str, Callable[[Any, list[Violation]], Any]] = {
    "ids": lambda ids, _violations: tuple(ids),
    "fields": _fields,
    "after": answer.positions_of_messages,
    "retriever": answer.retriever_of_message,
    "partial_results": answer.partial_results_of_message,
}
"""Conversions of fields of requests, which add violations."""
