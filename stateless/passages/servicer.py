"""Serves `winnow.v1.PassageService`: converts requests, calls the core, converts its results."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from winnow.convert import passage as convert
from winnow.deadline import Deadline
from winnow.domain.passage_request import (
    PageRequest,
    PassageCountRequest,
    PassageSearchRequest,
    PassagesRequest,
    TenantsRequest,
    UsageRequest,
)
from winnow.inference.fair_threads import FairThreads
from winnow.rpc import request_id
from winnow.rpc.client_key import client_of
from winnow.rpc.deadline import deadline_of
from winnow.stateless.passages.core import PassageCalls
from winnow.v1 import passage_pb2, passage_pb2_grpc

SERVICE = "winnow.v1.PassageService"
Reply = TypeVar("Reply")
Result = TypeVar("Result")


class PassageMessages:
    """The passage core with messages as requests and results, for gRPC and HTTP.

    A megabyte of passages takes tens of milliseconds to convert, so results are converted in a
    thread.
    """

    def __init__(self, core: PassageCalls, threads: FairThreads) -> None:
        self._core, self._threads = core, threads

    async def search(
        self, request: passage_pb2.SearchPassagesRequest, deadline: Deadline, client: str
    ) -> passage_pb2.SearchPassagesResponse:
        """Searches passages for a question."""
        result = await self._core.search(
            convert.request_of_message(PassageSearchRequest, request), deadline, client
        )
        return await self._to_reply(client, convert.search_to_message, result)

    async def look_up(
        self, request: passage_pb2.GetPassagesRequest, deadline: Deadline, client: str
    ) -> passage_pb2.GetPassagesResponse:
        """Returns passages by their ids."""
        found = await self._core.look_up(
            convert.request_of_message(PassagesRequest, request), deadline, client
        )
        return await self._to_reply(client, convert.found_to_message, found)

    async def page(
        self, request: passage_pb2.ListPassagesRequest, deadline: Deadline, client: str
    ) -> passage_pb2.ListPassagesResponse:
        """Returns a page of passages."""
        page = await self._core.page(
            convert.request_of_message(PageRequest, request), deadline, client
        )
        return await self._to_reply(client, convert.page_to_message, page)

    async def count(
        self, request: passage_pb2.CountPassagesRequest, deadline: Deadline, client: str
    ) -> passage_pb2.CountPassagesResponse:
        """Counts passages."""
        count = await self._core.count(
            convert.request_of_message(PassageCountRequest, request), deadline, client
        )
        return passage_pb2.CountPassagesResponse(passages=count, request_id=request_id.current())

    async def documents(
        self, request: passage_pb2.ListDocumentsRequest, deadline: Deadline, client: str
    ) -> passage_pb2.ListDocumentsResponse:
        """Returns a page of documents."""
        page = await self._core.documents(
            convert.request_of_message(PageRequest, request), deadline, client
        )
        return await self._to_reply(client, convert.documents_to_message, page)

    async def tenants(
        self, request: passage_pb2.ListTenantsRequest, deadline: Deadline, client: str
    ) -> passage_pb2.ListTenantsResponse:
        """Returns a page of tenants."""
        page = await self._core.tenants(
            convert.request_of_message(TenantsRequest, request), deadline, client
        )
        return await self._to_reply(client, convert.tenants_to_message, page)

    async def usage(
        self, request: passage_pb2.GetTenantUsageRequest, deadline: Deadline, client: str
    ) -> passage_pb2.GetTenantUsageResponse:
        """Returns what a tenant stores."""
        use = await self._core.usage(
            convert.request_of_message(UsageRequest, request), deadline, client
        )
        return passage_pb2.GetTenantUsageResponse(
            passages=use.used.passages,
            max_passages=use.quota.passages,
            bytes=use.used.bytes,
            max_bytes=use.quota.bytes,
            request_id=request_id.current(),
        )

    async def export(
        self,
        request: passage_pb2.ExportPassagesRequest,
        new_deadline: Callable[[], Deadline],
        client: str,
    ) -> AsyncGenerator[passage_pb2.ExportPassagesResponse, None]:
        """Yields all passages. Each page has its own deadline."""
        to_export = convert.request_of_message(PageRequest, request)
        async with aclosing(self._core.export(to_export, new_deadline, client)) as pages:
            async for page in pages:
                yield await self._threads.run(client, partial(convert.exported_to_message, page))

    async def export_lines(
        self,
        request: passage_pb2.ExportPassagesRequest,
        new_deadline: Callable[[], Deadline],
        client: str,
    ) -> AsyncGenerator[bytes, None]:
        """Yields all passages as JSON lines, a page at a time."""
        to_export = convert.request_of_message(PageRequest, request)
        async with aclosing(self._core.export(to_export, new_deadline, client)) as pages:
            async for page in pages:
                yield await self._threads.run(client, partial(convert.page_to_lines, page))

    async def _to_reply(
        self, client: str, to_message: Callable[[Result, str], Reply], result: Result
    ) -> Reply:
        return await self._threads.run(client, partial(to_message, result, request_id.current()))


class PassageServicer(passage_pb2_grpc.PassageServiceServicer):
    """Serves the passage core over gRPC."""

    def __init__(self, messages: PassageMessages, default_deadline: float) -> None:
        """`default_deadline`: deadline in seconds of a call whose caller sets none, and of each
        page of an export.
        """
        self._messages, self._default_deadline = messages, default_deadline

    async def SearchPassages(  # noqa: N802
        self, request: passage_pb2.SearchPassagesRequest, context: Any
    ) -> passage_pb2.SearchPassagesResponse:
        return await self._messages.search(request, self._deadline(context), client_of(context))

    async def GetPassages(  # noqa: N802
        self, request: passage_pb2.GetPassagesRequest, context: Any
    ) -> passage_pb2.GetPassagesResponse:
        return await self._messages.look_up(request, self._deadline(context), client_of(context))

    async def ListPassages(  # noqa: N802
        self, request: passage_pb2.ListPassagesRequest, context: Any
    ) -> passage_pb2.ListPassagesResponse:
        return await self._messages.page(request, self._deadline(context), client_of(context))

    async def CountPassages(  # noqa: N802
        self, request: passage_pb2.CountPassagesRequest, context: Any
    ) -> passage_pb2.CountPassagesResponse:
        return await self._messages.count(request, self._deadline(context), client_of(context))

    async def ListDocuments(  # noqa: N802
        self, request: passage_pb2.ListDocumentsRequest, context: Any
    ) -> passage_pb2.ListDocumentsResponse:
        return await self._messages.documents(request, self._deadline(context), client_of(context))

    async def ListTenants(  # noqa: N802
        self, request: passage_pb2.ListTenantsRequest, context: Any
    ) -> passage_pb2.ListTenantsResponse:
        return await self._messages.tenants(request, self._deadline(context), client_of(context))

    async def GetTenantUsage(  # noqa: N802
        self, request: passage_pb2.GetTenantUsageRequest, context: Any
    ) -> passage_pb2.GetTenantUsageResponse:
        return await self._messages.usage(request, self._deadline(context), client_of(context))

    async def ExportPassages(  # noqa: N802
        self, request: passage_pb2.ExportPassagesRequest, context: Any
    ) -> AsyncGenerator[passage_pb2.ExportPassagesResponse, None]:
        new_deadline = partial(Deadline.after, self._default_deadline)
        exported = self._messages.export(request, new_deadline, client_of(context))
        async with aclosing(exported) as replies:
            async for reply in replies:
                yield reply

    def _deadline(self, context: Any) -> Deadline:
        return deadline_of(context, self._default_deadline)
