"""Converts users' calls for passages to messages of `passage.proto` and back."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from winnow.convert import answer
from winnow.convert.by_name import optional
from winnow.convert.shard_passage import documents_to_messages, fields_of_numbers
from winnow.domain.listing import SelectedFields
from winnow.domain.passage import Passage
from winnow.domain.passage_request import (
    DocumentBatch,
    PageRequest,
    PassageCountRequest,
    PassageResults,
    PassagesById,
    PassageSearchRequest,
    PassageSearchResult,
    PassagesRequest,
    RankedPassage,
)
from winnow.errors import InvalidRequestError, Violation
from winnow.v1 import passage_pb2

Request = TypeVar("Request")


def search_of_message(message: passage_pb2.SearchPassagesRequest) -> PassageSearchRequest:
    """Converts a search. Like every conversion of a request here, raises InvalidRequestError, which
    names the fields with unknown values.
    """
    violations: list[Violation] = []
    request = PassageSearchRequest(
        question=message.question,
        passages=optional(message, "passages"),
        retriever=answer.retriever_of_message(message.retriever, violations),
        partial_results=answer.partial_results_of_message(message.partial_results, violations),
        where=message.filter,
        after=answer.positions_of_messages(message.after, violations),
        fields=_fields(message.fields, violations),
    )
    return _checked(request, violations)


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


def lookup_of_message(message: passage_pb2.GetPassagesRequest) -> PassagesRequest:
    violations: list[Violation] = []
    request = PassagesRequest(
        ids=tuple(message.ids),
        fields=_fields(message.fields, violations),
        after=answer.positions_of_messages(message.after, violations),
    )
    return _checked(request, violations)


def found_to_message(found: PassagesById, request_id: str) -> passage_pb2.GetPassagesResponse:
    """Converts passages. Call it in a thread, as `search_to_message`."""
    return passage_pb2.GetPassagesResponse(
        passages=map(answer.passage_to_message, found.passages),
        missing_ids=found.missing_ids,
        remaining_ids=found.remaining_ids,
        request_id=request_id,
    )


def page_of_message(message: passage_pb2.ListPassagesRequest) -> PageRequest:
    violations: list[Violation] = []
    request = PageRequest(
        where=message.filter,
        page_size=optional(message, "page_size"),
        page_token=message.page_token,
        fields=_fields(message.fields, violations),
        after=answer.positions_of_messages(message.after, violations),
    )
    return _checked(request, violations)


def page_to_message(page: PassageResults, request_id: str) -> passage_pb2.ListPassagesResponse:
    """Converts a page. Call it in a thread, as `search_to_message`."""
    return passage_pb2.ListPassagesResponse(
        passages=map(answer.passage_to_message, page.passages),
        next_page_token=page.next_page_token,
        request_id=request_id,
    )


def export_of_message(message: passage_pb2.ExportPassagesRequest) -> PageRequest:
    violations: list[Violation] = []
    request = PageRequest(
        where=message.filter,
        page_token=message.page_token,
        after=answer.positions_of_messages(message.after, violations),
    )
    return _checked(request, violations)


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


def count_of_message(message: passage_pb2.CountPassagesRequest) -> PassageCountRequest:
    violations: list[Violation] = []
    after = answer.positions_of_messages(message.after, violations)
    return _checked(PassageCountRequest(where=message.filter, after=after), violations)


def documents_of_message(message: passage_pb2.ListDocumentsRequest) -> PageRequest:
    violations: list[Violation] = []
    request = PageRequest(
        where=message.filter,
        page_size=optional(message, "page_size"),
        page_token=message.page_token,
        after=answer.positions_of_messages(message.after, violations),
    )
    return _checked(request, violations)


def documents_to_message(page: DocumentBatch, request_id: str) -> passage_pb2.ListDocumentsResponse:
    """Converts a page of documents."""
    return passage_pb2.ListDocumentsResponse(
        documents=documents_to_messages(page.documents),
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


def _checked(request: Request, violations: Sequence[Violation]) -> Request:
    if violations:
        raise InvalidRequestError(*violations)
    return request
