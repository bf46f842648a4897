"""The client for asyncio programs."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from typing import Any, Self, Unpack

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.address import DEFAULT_ADDRESS
from winnow.client.calls import DEFAULT_TIMEOUT, Call, CallOptions, call_error, request_id_metadata
from winnow.client.channels import SERVICE, check_address, open_aio_channel
from winnow.client.client import CHECK_INTERVAL, CHECK_TIMEOUT, Result
from winnow.client.credentials import Credentials, LiveCredentials
from winnow.client.feeding import (
    DEFAULT_FEED_TIMEOUT,
    Ids,
    PassageFields,
    delete_call,
    delete_where_call,
    joined_deletions,
    put_call,
)
from winnow.client.options import Options, answer_call
from winnow.client.passages import (
    MAX_PAGE,
    ListOptions,
    PassageBatch,
    PassageFieldName,
    SearchOptions,
    SearchReply,
    count_call,
    documents_call,
    lookup_calls,
    page_call,
    search_call,
)
from winnow.client.predicting import Predictions, predict_call
from winnow.client.replies import Passage, Reply
from winnow.deadline import Deadline
from winnow.domain.listing import StoredDocument
from winnow.domain.write import DeletedPassages, Position, WriteResult
from winnow.errors import UnavailableError
from winnow.rpc.replying import reply_of


class AsyncConnection:
    """A connection to front nodes, for one event loop. `async with` closes it at the end."""

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        client_name: str = "",
        credentials: Credentials | None = None,
    ) -> None:
        """Takes the arguments of `Client`. May be called before an event loop runs."""
        check_address(address)
        self.address = address
        self._credentials = LiveCredentials(address, credentials)
        self._options = CallOptions(self._credentials, client_name)

    async def available(self) -> bool:
        """Whether a front node is reachable and reports SERVING."""
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        health = health_pb2_grpc.HealthStub(self._channel)
        try:
            reply = await health.Check(request, timeout=CHECK_TIMEOUT)
        except grpc.aio.AioRpcError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)

    async def close(self) -> None:
        """Closes the connection, and cancels its running calls."""
        await self._channel.close()

    @cached_property
    def _channel(self) -> grpc.aio.Channel:
        """The channel, opened on the event loop of the first call."""
        return open_aio_channel(self.address, self._credentials)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncClientApi(ABC):
    """The asyncio methods that ask, search, list, predict and write.

    A subclass runs them on front nodes, or on an index in its process.
    """

    async def ask(
        self,
        question: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
        **options: Unpack[Options],
    ) -> Reply:
        """Asks a question. Arguments and errors are those of `Client.ask`."""
        return await self.run(answer_call(question, options), timeout, request_id)

    async def predict(
        self,
        text: str | Sequence[str],
        heads: str | Sequence[str],
        *,
        ring: str = "",
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
    ) -> Predictions:
        """Applies heads. Arguments and errors are those of `Client.predict`."""
        return await self.run(predict_call(text, heads, ring), timeout, request_id)

    async def put(
        self,
        passages: PassageFields | Sequence[PassageFields],
        *,
        timeout: float = DEFAULT_FEED_TIMEOUT,
        request_id: str | None = None,
    ) -> tuple[WriteResult, ...]:
        """Stores passages. Arguments and errors are those of `Client.put`.

        A cancelled call may have stored some of the passages.
        """
        return await self.run(put_call(passages), timeout, request_id)

    async def delete(
        self,
        ids: Ids,
        *,
        version: int | None = None,
        timeout: float = DEFAULT_FEED_TIMEOUT,
        request_id: str | None = None,
    ) -> tuple[WriteResult, ...]:
        """Deletes passages. Arguments and errors are those of `Client.delete`."""
        return await self.run(delete_call(ids, version), timeout, request_id)

    async def delete_where(
        self,
        where: str = "",
        *,
        document: str = "",
        dry_run: bool = False,
        after: Sequence[Position] = (),
        timeout: float = DEFAULT_FEED_TIMEOUT,
        request_id: str | None = None,
    ) -> DeletedPassages:
        """Deletes by filter. Arguments and errors are those of `Client.delete_where`."""
        call = delete_where_call(where, document, dry_run, after)
        total = await self.run(call, timeout, request_id)
        while not total.complete:
            total = joined_deletions(total, await self.run(call, timeout, request_id))
        return total

    async def search(
        self,
        question: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
        **options: Unpack[SearchOptions],
    ) -> SearchReply:
        """Finds passages. Arguments and errors are those of `Client.search`."""
        return await self.run(search_call(question, options), timeout, request_id)

    async def get_passages(
        self,
        ids: str | Sequence[str],
        *,
        fields: Sequence[PassageFieldName] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
    ) -> dict[str, Passage]:
        """Returns passages by id. Arguments and errors are those of `Client.get_passages`."""
        found: dict[str, Passage] = {}
        left: Sequence[str] = [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))
        while left:
            remaining: list[str] = []
            for call in lookup_calls(left, fields):
                lookup = await self.run(call, timeout, request_id)
                found.update((each.id, each) for each in lookup.passages)
                remaining += lookup.remaining_ids
            left = remaining
        return found

    async def list_page(
        self,
        page_token: str = "",
        *,
        page_size: int | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
        **options: Unpack[ListOptions],
    ) -> PassageBatch:
        """Returns a page of passages. Arguments and errors are those of `Client.list_page`."""
        return await self.run(page_call(page_size, page_token, options), timeout, request_id)

    async def list_passages(
        self, *, timeout: float = DEFAULT_TIMEOUT, **options: Unpack[ListOptions]
    ) -> AsyncIterator[Passage]:
        """Yields passages. Arguments and errors are those of `Client.list_passages`."""
        token = ""
        while True:
            page = await self.list_page(token, page_size=MAX_PAGE, timeout=timeout, **options)
            for passage in page.passages:
                yield passage
            token = page.next_page_token
            if not token:
                return

    async def count_passages(
        self,
        where: str | None = None,
        *,
        after: Sequence[Position] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
    ) -> int:
        """Counts passages. Arguments and errors are those of `Client.count_passages`."""
        return await self.run(count_call(where, after), timeout, request_id)

    async def list_documents(
        self,
        where: str | None = None,
        *,
        after: Sequence[Position] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> AsyncIterator[StoredDocument]:
        """Yields documents. Arguments and errors are those of `Client.list_documents`."""
        token = ""
        while True:
            page = await self.run(documents_call(token, where, after), timeout, None)
            for document in page.documents:
                yield document
            token = page.next_page_token
            if not token:
                return

    @abstractmethod
    async def run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        """Runs a call, and returns its result. Raises WinnowError if the call fails."""


class AsyncClient(AsyncConnection, AsyncClientApi):
    """An asyncio `Client`: asks questions, applies heads, and writes passages."""

    async def wait_ready(self, timeout: float = 60.0) -> None:
        """Waits until a front node reports SERVING.

        Raises UnavailableError if none does within `timeout` seconds.
        """
        deadline = Deadline.after(timeout)
        while not await self.available():
            if deadline.left() <= 0:
                raise UnavailableError(
                    f"no front node at {self.address} served within {timeout:g} s"
                )
            await asyncio.sleep(CHECK_INTERVAL)

    async def run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        id_metadata = request_id_metadata(request_id)
        options = self._options.arguments(timeout, id_metadata)
        try:
            reply: Any = await reply_of(call.method_of(self._channel)(call.request, **options))
        except grpc.aio.AioRpcError as error:
            raise call_error(error, self.address, timeout, id_metadata) from error
        return call.result(reply)
