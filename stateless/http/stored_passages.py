"""Serves `/v1/search`, `GET /v1/passages` and what else mirrors `PassageService`.

Passages are looked up by a POST, because ids may have characters that a path cannot contain.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from google.protobuf.message import Message

from winnow.deadline import Deadline
from winnow.rpc.server import KIB
from winnow.stateless.early_rejection import Refusal
from winnow.stateless.http.call import MAX_ESCAPED_BYTES, HttpOperation, LinesReply, NewDeadline
from winnow.stateless.http.headers import before_deadline
from winnow.stateless.passages.servicer import PassageMessages
from winnow.v1 import answer_pb2, passage_pb2

_MAX_BODY_BYTES = 16 * KIB * MAX_ESCAPED_BYTES
Work = Callable[[Any, Deadline, str], Awaitable[Message]]
"""A call of the passage core: `work(message, deadline, client)`."""


def passage_operations(
    messages: PassageMessages, default_deadline: float, refusal: Refusal
) -> list[HttpOperation]:
    """Returns the operations of the passage core.

    Args:
        messages: the passage core.
        default_deadline: deadline in seconds of a call whose caller sets none.
        refusal: returns the error that refuses a client's request before its body is read.

    """
    make = partial(
        HttpOperation,
        scope="ask",
        default_deadline=default_deadline,
        max_body_bytes=_MAX_BODY_BYTES,
        refusal=refusal,
    )
    return [
        make(
            name="SearchPassages",
            path="/v1/search",
            about="Finds the passages that are most likely to answer a question, without reading "
            "them. For programs that feed a language model.",
            run=partial(_run, messages.search),
            request=passage_pb2.SearchPassagesRequest,
            response=passage_pb2.SearchPassagesResponse,
        ),
        make(
            name="GetPassages",
            path="/v1/passages:get",
            about="Returns passages by their ids.",
            run=partial(_run, messages.look_up),
            request=passage_pb2.GetPassagesRequest,
            response=passage_pb2.GetPassagesResponse,
        ),
        make(
            name="ListPassages",
            path="/v1/passages",
            verb="GET",
            about="Returns a page of passages, in the order of their ids.",
            run=partial(_run, messages.page),
            request=passage_pb2.ListPassagesRequest,
            response=passage_pb2.ListPassagesResponse,
        ),
        make(
            name="CountPassages",
            path="/v1/passages:count",
            verb="GET",
            about="Counts passages.",
            run=partial(_run, messages.count),
            request=passage_pb2.CountPassagesRequest,
            response=passage_pb2.CountPassagesResponse,
        ),
        make(
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
        ),
        make(
            name="ListDocuments",
            path="/v1/documents",
            verb="GET",
            about="Returns a page of documents: the values of the metadata field document.",
            run=partial(_run, messages.documents),
            request=passage_pb2.ListDocumentsRequest,
            response=passage_pb2.ListDocumentsResponse,
        ),
    ]


async def _run(work: Work, message: Message, new_deadline: NewDeadline, client: str) -> Message:
    deadline = new_deadline()
    return await before_deadline(work(message, deadline, client), deadline)


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
