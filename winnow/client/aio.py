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
from winnow.client.calls import (
    DEFAULT_TIMEOUT,
    Call,
    CallOptions,
    Result,
    call_error,
    request_id_metadata,
    set_index,
    set_tenant,
)
from winnow.client.channels import SERVICES, check_address, open_aio_channel
from winnow.client.credentials import Credentials, LiveCredentials
from winnow.client.feeding import (
    DEFAULT_FEED_TIMEOUT,
    Ids,
    PassageFields,
    WriteResults,
    delete_call,
    delete_tenant_call,
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
    distinct_ids,
    documents_call,
    lookup_calls,
    page_call,
    search_call,
    tenants_call,
    usage_call,
)
from winnow.client.predicting import Predictions, predict_call
from winnow.client.reading import (
    DEFAULT_READ_TIMEOUT,
    HighlightReply,
    ReadReply,
    RerankReply,
    Texts,
    highlight_call,
    read_call,
    rerank_call,
)
from winnow.client.replies import Passage, Reply
from winnow.deadline import Deadline
from winnow.domain.listing import StoredDocument, StoredTenant
from winnow.domain.quota import StorageUse
from winnow.domain.write import DeletedPassages, DeletedTenant, Position
from winnow.errors import UnavailableError
from winnow.rpc.replying import reply_of

CHECK_INTERVAL = 0.1
CHECK_TIMEOUT = 1.0


class AsyncConnection:
    """A connection to front nodes, for one event loop. `async with` closes it at the end."""

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        client_name: str = "",
        credentials: Credentials | None = None,
        index: str = "",
        tenant: str = "",
    ) -> None:
        """Takes the arguments of `Client`. May be called before an event loop runs."""
        check_address(address)
        self.address, self.index, self.tenant = address, index, tenant
        self._credentials = LiveCredentials(address, credentials)
        self._options = CallOptions(self._credentials, client_name)

    async def available(self) -> bool:
        """Whether a server is reachable that reports SERVING for questions or for texts."""
        return await self._serving_within(CHECK_TIMEOUT, SERVICES)

    async def _serving_within(self, timeout: float, services: Sequence[str]) -> bool:
        """Whether a server reports SERVING for the first of `services` that it knows.

        `timeout`: seconds for each of them.
        """
        health = health_pb2_grpc.HealthStub(self._channel)
        for service in services:
            request = health_pb2.HealthCheckRequest(service=service)
            try:
                reply = await health.Check(request, timeout=timeout)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    continue
                return False
            return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)
        return False

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
    """The asyncio methods that ask, search, list, predict, read and write.

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
        """Asks a question, and waits for the reply.

        Args:
            question: 1 to 1000 characters.
            timeout: seconds until the question is given up. Shards get a shorter deadline.
            request_id: id of the question in logs; a random one if None.
            options: see `winnow.client.Options`.

        Raises:
            InvalidRequestError: fields break a rule; `violations` names each of them.
            OverloadedError: the cluster is full; try again after `retry_after` seconds.
            DeadlineExceededError: there was no reply in time.
            UnavailableError: no front node or no shard can be reached.
            WinnowError: the front node reported another error.

        """
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
        """Applies heads to a text, or to several, and waits for the predictions.

        Args:
            text: a text of 1 to 2000 characters, or up to 16 texts.
            heads: id of a head, or up to 32 ids.
            ring: name of the encoder group that holds the heads; empty for the default group.
            timeout: seconds until the request is given up.
            request_id: id of the request in logs; a random one if None.

        Raises:
            InvalidRequestError: fields break a rule; `violations` names each of them.
            NotFoundError: the encoder group, or a head in it, does not exist.
            OverloadedError: the front node is full; try again after `retry_after` seconds.
            DeadlineExceededError: no head was applied in time.
            UnavailableError: no front node can be reached, or it serves no heads.
            WinnowError: the front node reported another error.

        """
        return await self.run(predict_call(text, heads, ring), timeout, request_id)

    async def read(
        self,
        question: str,
        texts: Texts,
        *,
        answers: int | None = None,
        max_answer_tokens: int | None = None,
        min_confidence: float | None = None,
        timeout: float = DEFAULT_READ_TIMEOUT,
        request_id: str | None = None,
    ) -> ReadReply:
        """Reads texts of the caller: finds the words of each text that answer a question.

        Args:
            question: 1 to 1000 characters.
            texts: 1 to 1000 texts of any length, with at most 1,000,000 characters in total. Each
                is a text, or a mapping with `text`, `title` and `id`.
            answers: maximum number of readings in `best`; 3 if None.
            max_answer_tokens: maximum length of a span, in tokens of the reader.
            min_confidence: `has_answer` is false if the best span is less likely to be right.
            timeout: seconds until the call is given up.
            request_id: id of the request in logs; a random one if None.

        Raises:
            InvalidRequestError: fields break a rule; `violations` names each of them.
            OverloadedError: the server is full; try again after `retry_after` seconds.
            DeadlineExceededError: the texts were not read in time.
            UnavailableError: no server can be reached.
            NotServedError: the server reads no texts, because it lacks --reader-threads.
            WinnowError: the server reported another error.

        """
        options = {
            "answers": answers,
            "max_answer_tokens": max_answer_tokens,
            "min_confidence": min_confidence,
        }
        return await self.run(read_call(question, texts, options), timeout, request_id)

    async def rerank(
        self,
        question: str,
        texts: Texts,
        *,
        top_n: int | None = None,
        timeout: float = DEFAULT_READ_TIMEOUT,
        request_id: str | None = None,
    ) -> RerankReply:
        """Orders texts of the caller by their relevance to a question.

        `top_n` is the number of results; None for all texts. Other arguments and errors are those
        of `read`.
        """
        return await self.run(rerank_call(question, texts, top_n), timeout, request_id)

    async def highlight(
        self,
        question: str,
        text: str,
        *,
        title: str = "",
        sentences: int | None = None,
        max_answer_tokens: int | None = None,
        min_confidence: float | None = None,
        timeout: float = DEFAULT_READ_TIMEOUT,
        request_id: str | None = None,
    ) -> HighlightReply:
        """Finds the sentences of a text that answer a question. Errors are those of `read`.

        Args:
            question: 1 to 1000 characters.
            text: text of 1 to 1,000,000 characters.
            title: title of the text, which is read, too.
            sentences: maximum number of sentences; 3 if None.
            max_answer_tokens: maximum length of a span, in tokens of the reader.
            min_confidence: minimum confidence of a sentence's best span, 0 to 1; if None, half of
                the confidence of the best sentence.
            timeout: seconds until the call is given up.
            request_id: id of the request in logs; a random one if None.

        """
        options = {
            "title": title,
            "sentences": sentences,
            "max_answer_tokens": max_answer_tokens,
            "min_confidence": min_confidence,
        }
        return await self.run(highlight_call(question, text, options), timeout, request_id)

    async def put(
        self,
        passages: PassageFields | Sequence[PassageFields],
        *,
        timeout: float = DEFAULT_FEED_TIMEOUT,
        request_id: str | None = None,
    ) -> WriteResults:
        """Stores a passage, or up to 100, and waits until they are durable.

        The client's address must be that of a front node's --feed-listen. A failed or cancelled
        call may have stored some of the passages. It is safe to send them again.

        Args:
            passages: see `winnow.client.PassageFields`. If ids repeat, the last passage counts.
            timeout: seconds until the call is given up.
            request_id: id of the request in logs; a random one if None.

        Raises:
            InvalidRequestError: fields break a rule, and nothing was stored; `violations` names
                each field.
            OverloadedError: too many writes are in progress; try again after `retry_after` seconds.
            QuotaExceededError: the tenant would store more than its quota.
            NotWritableError: the index takes no writes; the message says what to change.
            DeadlineExceededError: the passages were not stored in time.
            UnavailableError: no front node, or not every shard, can be reached.
            WinnowError: the front node reported another error.

        """
        return await self.run(put_call(passages), timeout, request_id)

    async def delete(
        self,
        ids: Ids,
        *,
        version: int | None = None,
        timeout: float = DEFAULT_FEED_TIMEOUT,
        request_id: str | None = None,
    ) -> WriteResults:
        """Deletes passages by their ids, at most 1000. An unknown id is not an error.

        Errors are those of `put`.

        Args:
            ids: an id, several ids, or a mapping of ids to versions.
            version: version of each deletion for which `ids` has none. A passage with a higher
                version is kept. A later put with a lower version is ignored.
            timeout: seconds until the call is given up.
            request_id: id of the request in logs; a random one if None.

        """
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
        """Deletes the passages that match a filter, or those of a document.

        The client's address must be that of a front node's --feed-listen. It is safe to repeat a
        failed call. A passage that is replaced meanwhile may be deleted although its new metadata
        does not match. Errors are those of `put`.

        Args:
            where: filter on the metadata of passages.
            document: value of the metadata field `document`, instead of a filter.
            dry_run: whether to count the passages instead of deleting them.
            after: positions of writes that the filter must see.
            timeout: seconds until a request is given up. Many passages take several requests.
            request_id: id of the requests in logs; a random one if None.

        """
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
        """Finds the passages that are most likely to answer a question, without reading them.

        Arguments and errors are those of `ask`.

        Args:
            question: 1 to 1000 characters.
            timeout: seconds until the search is given up.
            request_id: id of the search in logs; a random one if None.
            options: see `winnow.client.SearchOptions`.

        """
        return await self.run(search_call(question, options), timeout, request_id)

    async def get_passages(
        self,
        ids: str | Sequence[str],
        *,
        fields: Sequence[PassageFieldName] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
    ) -> dict[str, Passage]:
        """Returns passages by their ids. Ids that the index lacks are left out.

        Args:
            ids: an id, or any number of ids. Many ids take several requests.
            fields: fields to return besides the id; None for all.
            timeout: seconds until a request is given up.
            request_id: id of the requests in logs; a random one if None.

        Raises:
            InvalidRequestError: an id is invalid; `violations` names it.
            OverloadedError: the cluster is full; try again after `retry_after` seconds.
            DeadlineExceededError: a shard was late.
            UnavailableError: a shard cannot be reached, or its node is of an older version.
            WinnowError: the front node reported another error.

        """
        found: dict[str, Passage] = {}
        left = distinct_ids(ids)
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
        """Returns a page of passages, in the order of their ids. Errors are as of `get_passages`.

        Args:
            page_token: `next_page_token` of the previous page; empty for the first page.
            page_size: maximum number of passages, 1 to 1000.
            timeout: seconds until the page is given up.
            request_id: id of the request in logs; a random one if None.
            options: see `winnow.client.ListOptions`.

        """
        return await self.run(page_call(page_size, page_token, options), timeout, request_id)

    async def list_passages(
        self, *, timeout: float = DEFAULT_TIMEOUT, **options: Unpack[ListOptions]
    ) -> AsyncIterator[Passage]:
        """Yields passages in the order of their ids, page by page.

        A passage that stays in the index meanwhile is yielded exactly once. Arguments and errors
        are those of `list_page`; each page has the `timeout`.
        """
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
        """Counts the passages that match a filter. Errors are those of `get_passages`.

        Args:
            where: filter on the metadata of passages; None for all passages.
            after: positions of writes that the number must reflect.
            timeout: seconds until the call is given up.
            request_id: id of the request in logs; a random one if None.

        """
        return await self.run(count_call(where, after), timeout, request_id)

    async def list_documents(
        self,
        where: str | None = None,
        *,
        after: Sequence[Position] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> AsyncIterator[StoredDocument]:
        """Yields documents in the order of their names: values of the metadata field `document`.

        The number of passages counts only passages that match `where`. Arguments and errors are
        those of `count_passages`; each page has the `timeout`.
        """
        token = ""
        while True:
            page = await self.run(documents_call(token, where, after), timeout, None)
            for document in page.documents:
                yield document
            token = page.next_page_token
            if not token:
                return

    async def list_tenants(
        self, *, timeout: float = DEFAULT_TIMEOUT
    ) -> AsyncIterator[StoredTenant]:
        """Yields the tenants of the index that have passages, in the order of their names.

        With keys, the caller must be an administrator. Each page has the `timeout`. Errors are
        those of `count_passages`.
        """
        token = ""
        while True:
            page = await self.run(tenants_call(token), timeout, None)
            for tenant in page.tenants:
                yield tenant
            token = page.next_page_token
            if not token:
                return

    async def tenant_usage(
        self,
        tenant: str | None = None,
        *,
        after: Sequence[Position] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
    ) -> StorageUse:
        """Returns what a tenant stores, and how much it may store.

        Errors are those of `count_passages`.

        Args:
            tenant: name of the tenant; None for that of the client, or of its key.
            after: positions of writes that the numbers must reflect.
            timeout: seconds until the call is given up.
            request_id: id of the request in logs; a random one if None.

        """
        return await self.run(usage_call(tenant, after), timeout, request_id)

    async def delete_tenant(
        self,
        tenant: str,
        *,
        timeout: float = DEFAULT_FEED_TIMEOUT,
        request_id: str | None = None,
    ) -> DeletedTenant:
        """Deletes all passages of a tenant. When the call returns, no question finds them.

        The client's address must be that of a front node's --feed-listen. With keys, the caller
        must be an administrator. The next merge of the shard removes the passages from its disk.
        It is safe to repeat a failed call. Errors are those of `put`.

        Args:
            tenant: name of the tenant.
            timeout: seconds until the call is given up.
            request_id: id of the request in logs; a random one if None.

        """
        return await self.run(delete_tenant_call(tenant), timeout, request_id)

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
        set_index(call.request, self.index)
        set_tenant(call.request, self.tenant)
        try:
            reply: Any = await reply_of(call.method_of(self._channel)(call.request, **options))
        except grpc.aio.AioRpcError as error:
            raise call_error(error, self.address, timeout, id_metadata) from error
        return call.result(reply)
