"""Serves `/v1/documents:convert`: converts a file to passages, which the caller then stores."""

from functools import partial

from winnow.convert import feed as convert
from winnow.deadline import Deadline
from winnow.rpc import request_id
from winnow.rpc.server import KIB
from winnow.stateless.feed.document_conversion import MAX_FILE_BYTES, DocumentConversion
from winnow.stateless.http.call import HttpOperation, OperationLimits
from winnow.stateless.http.rpc_operation import before_its_deadline
from winnow.v1 import http_pb2

_MAX_BODY_BYTES = MAX_FILE_BYTES * 4 // 3 + 4 * KIB
"""A file in base64, and its name."""


def document_operations(
    conversion: DocumentConversion, limits: OperationLimits
) -> list[HttpOperation]:
    """Returns the operation that converts files."""
    return [
        HttpOperation(
            name="ConvertDocument",
            path="/v1/documents:convert",
            about="Converts a file, such as a PDF, to passages. Stores nothing: send the passages "
            "to /v1/passages.",
            scope="feed",
            run=before_its_deadline(partial(_convert, conversion)),
            request=http_pb2.ConvertDocumentRequest,
            response=http_pb2.ConvertDocumentResponse,
            limits=limits,
            max_body_bytes=_MAX_BODY_BYTES,
        )
    ]


async def _convert(
    conversion: DocumentConversion,
    message: http_pb2.ConvertDocumentRequest,
    _deadline: Deadline,
    client: str,
) -> http_pb2.ConvertDocumentResponse:
    converted = await conversion.convert(message.name, message.content, client)
    return http_pb2.ConvertDocumentResponse(
        passages=map(convert.passage_to_message, converted.passages),
        notes=converted.notes,
        document_hash=converted.digest,
        request_id=request_id.current(),
    )
