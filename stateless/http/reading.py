"""Serves `/v1/read`, `/v1/highlight` and the two paths of rerankers."""

from functools import partial

from google.protobuf.struct_pb2 import Value

from winnow.deadline import Deadline
from winnow.domain.text_reading import RankedTexts, RerankTextsRequest, TextToRead
from winnow.errors import InvalidRequestError, Violation, invalid_field
from winnow.rpc import request_id
from winnow.stateless.http.call import MAX_ESCAPED_BYTES, HttpOperation, OperationLimits
from winnow.stateless.http.rpc_operation import before_its_deadline, rpc_operation
from winnow.stateless.reading.servicer import MAX_MESSAGE_BYTES, ReadMessages
from winnow.v1 import http_pb2, read_pb2

_MAX_BODY_BYTES = MAX_MESSAGE_BYTES * MAX_ESCAPED_BYTES
_SERVICE = read_pb2.DESCRIPTOR.services_by_name["ReadService"]


def read_operations(messages: ReadMessages, limits: OperationLimits) -> list[HttpOperation]:
    """Returns the operations that read texts of callers."""
    operation = partial(
        rpc_operation, _SERVICE, scope="read", limits=limits, max_body_bytes=_MAX_BODY_BYTES
    )
    return [
        operation(
            "ReadTexts",
            messages.read,
            "/v1/read",
            "Reads texts that the caller sends: finds the words that answer a question in each of "
            "them. No index is needed.",
        ),
        operation(
            "HighlightText",
            messages.highlight,
            "/v1/highlight",
            "Finds the sentences of a text of any length that answer a question.",
        ),
        _rerank(messages, "1", limits),
        _rerank(messages, "2", limits),
    ]


def _rerank(messages: ReadMessages, version: str, limits: OperationLimits) -> HttpOperation:
    return HttpOperation(
        name=f"RerankV{version}",
        path=f"/v{version}/rerank",
        about="Orders documents by their relevance to a query. Requests and replies have the form "
        "that several servers for reranking share, so their clients work unchanged.",
        run=before_its_deadline(partial(_run_rerank, messages, version)),
        request=http_pb2.RerankRequest,
        response=http_pb2.RerankResponse,
        ignores_unknown_fields=True,
        scope="read",
        limits=limits,
        max_body_bytes=_MAX_BODY_BYTES,
    )


async def _run_rerank(
    messages: ReadMessages,
    version: str,
    message: http_pb2.RerankRequest,
    deadline: Deadline,
    client: str,
) -> http_pb2.RerankResponse:
    texts = [_text(number, each) for number, each in enumerate(message.documents)]
    top_n = message.top_n if message.HasField("top_n") else None
    request = RerankTextsRequest(
        question=message.query,
        texts=tuple(map(TextToRead, texts)),
        top_n=None if top_n is None else min(top_n, max(len(texts), 1)),
    )
    try:
        ranked = await messages.reader.rerank(request, deadline, client)
    except InvalidRequestError as error:
        raise _with_names_of_rerankers(error) from error
    shown = texts if not message.HasField("return_documents") or message.return_documents else None
    work = partial(_response, message.model, version, ranked, shown, request_id.current())
    return await messages.convert(len(ranked.results), client, work)


def _text(number: int, document: Value) -> str:
    """Returns the text of a document, which is a text or an object."""
    kind = document.WhichOneof("kind")
    if kind == "string_value":
        return document.string_value
    field = f"documents[{number}]"
    if kind != "struct_value":
        raise invalid_field(field, "is neither a text nor an object with the field text")
    value = document.struct_value.fields.get("text")
    if value is None or value.WhichOneof("kind") != "string_value":
        raise invalid_field(f"{field}.text", "is not a text: a document needs the field text")
    return value.string_value


def _response(
    model: str, version: str, ranked: RankedTexts, texts: list[str] | None, identifier: str
) -> http_pb2.RerankResponse:
    return http_pb2.RerankResponse(
        id=identifier,
        model=model or ranked.report.model,
        results=[
            http_pb2.RerankResult(
                index=each.index,
                relevance_score=each.relevance_score,
                document=None if texts is None else http_pb2.RerankDocument(text=texts[each.index]),
            )
            for each in ranked.results
        ],
        usage=http_pb2.RerankUsage(
            total_tokens=ranked.report.tokens, prompt_tokens=ranked.report.tokens
        ),
        meta=http_pb2.RerankMeta(api_version=http_pb2.RerankApiVersion(version=version)),
    )


_NAMES = {"question": "query", "texts": "documents"}
"""Names that rerankers have for fields."""


def _with_names_of_rerankers(error: InvalidRequestError) -> InvalidRequestError:
    """Returns the error with the names of fields that the caller knows."""
    return InvalidRequestError(
        *(
            Violation(_NAMES.get(each.field, each.field), each.description)
            for each in error.violations
        )
    )
