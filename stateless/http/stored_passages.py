"""Serves `/v1/search`, `GET /v1/passages` and what else mirrors `PassageService`.

Passages are looked up by a POST, because ids may have characters that a path cannot contain.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial

from winnow.rpc.server import KIB
from winnow.stateless.http.call import (
    MAX_ESCAPED_BYTES,
    HttpOperation,
    LinesReply,
    NewDeadline,
    OperationLimits,
)
from winnow.stateless.http.headers import before_deadline
from winnow.stateless.http.rpc_operation import rpc_operation
from winnow.stateless.passages.servicer import PassageMessages
from winnow.v1 import answer_pb2, passage_pb2

_MAX_BODY_BYTES = 16 * KIB * MAX_ESCAPED_BYTES
_SERVICE = passage_pb2.DESCRIPTOR.services_by_name["PassageService"]


def passage_operations(messages: PassageMessages, limits: OperationLimits) -> list[HttpOperation]:
    """Returns the operations of the passage core."""
    operation = partial(
        rpc_operation,
        _SERVICE,
        scope="ask",
        limits=limits,
        max_body_bytes=_MAX_BODY_BYTES,
    )
    search = (
        "Finds the passages that are most likely to answer a question, without reading them. For "
        "programs that feed a language model."
    )
    page = "Returns a page of passages, in the order of their ids."
    documents = "Returns a page of documents: the values of the metadata field document."
    return [
        operation("SearchPassages", messages.search, "/v1/search", search),
        operation(
            "GetPassages", messages.look_up, "/v1/passages:get", "Returns passages by their ids."
        ),
        operation("ListPassages", messages.page, "/v1/passages", page, verb="GET"),
        operation(
            "CountPassages", messages.count, "/v1/passages:count", "Counts passages.", verb="GET"
        ),
        HttpOperation(
            name="ExportPassages",
            path="/v1/passages:export",
            verb="GET",
            about="Returns all passages as JSON lines, as `winnow index build --passages` reads "
            "them. The timeout of the request covers the whole export. Without it, each page has "
            "the default timeout. After an error the connection is closed.",
            run=partial(_export, messages),
            request=passage_pb2.ExportPassagesRequest,
            response=answer_pb2.Passage,
            is_stream=True,
            scope="ask",
            limits=limits,
        ),
        operation("ListDocuments", messages.documents, "/v1/documents", documents, verb="GET"),
        operation(
            "ListTenants",
            messages.tenants,
            "/v1/tenants",
            "Returns a page of the tenants of an index. A key needs the scope admin.",
            verb="GET",
            of_all_tenants=True,
        ),
        operation(
            "GetTenantUsage",
            messages.usage,
            "/v1/tenants:usage",
            "Returns what a tenant stores.",
            verb="GET",
        ),
    ]


async def _export(
    messages: PassageMessages,
    message: passage_pb2.ExportPassagesRequest,
    new_deadline: NewDeadline,
    client: str,
) -> LinesReply:
    """Starts an export. An error of its first page is returned as a problem."""
    lines = messages.export_lines(message, new_deadline, client)
    first = await before_deadline(anext(lines), new_deadline())

    async def parts() -> AsyncIterator[bytes]:
        async with aclosing(lines):
            yield first
            async for part in lines:
                yield part

    return LinesReply(parts())
