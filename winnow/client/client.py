"""The client for synchronous programs."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, Unpack

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.address import DEFAULT_ADDRESS
from winnow.client.aio import CHECK_INTERVAL, CHECK_TIMEOUT, AsyncClientApi
from winnow.client.calls import (
    DEFAULT_TIMEOUT,
    Call,
    CallOptions,
    Metadata,
    Result,
    call_error,
    request_id_metadata,
    set_index,
    set_tenant,
)
from winnow.client.channels import SERVICES, ThreadedChannel, check_address
from winnow.client.credentials import Credentials, LiveCredentials
from winnow.client.passages import MAX_PAGE, ListOptions, documents_call, tenants_call
from winnow.client.replies import Passage
from winnow.deadline import Deadline
from winnow.domain.listing import StoredDocument, StoredTenant
from winnow.domain.write import Position
from winnow.errors import UnavailableError

Arguments = ParamSpec("Arguments")


class _BlockingCalls(AsyncClientApi):
    """The asyncio methods over a blocking client: their calls are over before they await them.

    So a coroutine of this class ends at its first step, and needs no event loop.
    """

    def __init__(self, api: "ClientApi") -> None:
        self._api = api

    async def run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        return self._api.run(call, timeout, request_id)


def _blocking(
    method: Callable[Concatenate[AsyncClientApi, Arguments], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate["ClientApi", Arguments], Result]:
    """Returns the blocking form of an asyncio method, with the same arguments and errors."""

    @wraps(method)
    def run(self: "ClientApi", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        coroutine = method(_BlockingCalls(self), *args, **kwargs)
        try:
            coroutine.send(None)
        except StopIteration as end:
            result: Result = end.value
            return result
        raise AssertionError("a blocking call waited for an event loop")

    return run


class ClientApi(ABC):
    """The methods of `AsyncClientApi`, which block until there is a result.

    A subclass runs them on front nodes, or on an index in its process.
    """

    ask = _blocking(AsyncClientApi.ask)
    """Asks a question, and waits for the reply."""
    predict = _blocking(AsyncClientApi.predict)
    """Applies heads to a text, or to several, and waits for the predictions."""
    read = _blocking(AsyncClientApi.read)
    """Reads texts of the caller: finds the words of each text that answer a question."""
    rerank = _blocking(AsyncClientApi.rerank)
    """Orders texts of the caller by their relevance to a question."""
    highlight = _blocking(AsyncClientApi.highlight)
    """Finds the sentences of a text that answer a question."""
    put = _blocking(AsyncClientApi.put)
    """Stores a passage, or up to 100, and waits until they are durable."""
    delete = _blocking(AsyncClientApi.delete)
    """Deletes passages by their ids, at most 1000. An unknown id is not an error."""
    delete_where = _blocking(AsyncClientApi.delete_where)
    """Deletes the passages that match a filter, or those of a document."""
    delete_tenant = _blocking(AsyncClientApi.delete_tenant)
    """Deletes all passages of a tenant. When the call returns, no question finds them."""
    tenant_usage = _blocking(AsyncClientApi.tenant_usage)
    """Returns what a tenant stores."""
    search = _blocking(AsyncClientApi.search)
    """Finds the passages that are most likely to answer a question, without reading them."""
    get_passages = _blocking(AsyncClientApi.get_passages)
    """Returns passages by their ids. Ids that the index lacks are left out."""
    list_page = _blocking(AsyncClientApi.list_page)
    """Returns a page of passages, in the order of their ids. Errors are as of `get_passages`."""
    count_passages = _blocking(AsyncClientApi.count_passages)
    """Counts the passages that match a filter. Errors are those of `get_passages`."""

    def list_passages(
        self, *, timeout: float = DEFAULT_TIMEOUT, **options: Unpack[ListOptions]
    ) -> Iterator[Passage]:
        """Yields passages. Arguments and errors are those of `AsyncClientApi.list_passages`."""
        token = ""
        while True:
            page = self.list_page(token, page_size=MAX_PAGE, timeout=timeout, **options)
            yield from page.passages
            token = page.next_page_token
            if not token:
                return

    def list_documents(
        self,
        where: str | None = None,
        *,
        after: Sequence[Position] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Iterator[StoredDocument]:
        """Yields documents. Arguments and errors are those of `AsyncClientApi.list_documents`."""
        token = ""
        while True:
            page = self.run(documents_call(token, where, after), timeout, None)
            yield from page.documents
            token = page.next_page_token
            if not token:
                return

    def list_tenants(self, *, timeout: float = DEFAULT_TIMEOUT) -> Iterator[StoredTenant]:
        """Yields tenants. Arguments and errors are those of `AsyncClientApi.list_tenants`."""
        token = ""
        while True:
            page = self.run(tenants_call(token), timeout, None)
            yield from page.tenants
            token = page.next_page_token
            if not token:
                return

    @abstractmethod
    def run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        """Runs a call, and returns its result. Raises WinnowError if the call fails."""


class Client(ClientApi):
    """A client of one front node or several. Threads may share a client.

    The client connects at the first call, and again after a lost connection. `with` closes it.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        client_name: str = "",
        credentials: Credentials | None = None,
        index: str = "",
        tenant: str = "",
    ) -> None:
        """Makes no connection yet.

        Args:
            address: HOST:PORT of a front node. For several, `dns:///HOST:PORT` or
                `ipv4:ADDRESS:PORT,ADDRESS:PORT`: each call goes to a healthy one.
            client_name: name of the caller: 1 to 64 letters, digits or ._:@-. Front nodes share
                their time fairly among names. With keys, the name of the key counts instead.
            credentials: certificates and a token, if the front nodes require them.
            index: name of the index of all calls, or an alias of it; empty for the default index.
            tenant: tenant of all calls, in an index with tenants. Empty if the key decides it.

        Raises InvalidRequestError if an argument is invalid or a file cannot be used.

        """
        check_address(address)
        self.address, self.index, self.tenant = address, index, tenant
        live = LiveCredentials(address, credentials)
        self._options = CallOptions(live, client_name)
        self._channel = ThreadedChannel(address, live)

    def available(self) -> bool:
        """Whether a server is reachable that reports SERVING for questions or for texts."""
        health = health_pb2_grpc.HealthStub(self._channel.newest)
        for service in SERVICES:
            request = health_pb2.HealthCheckRequest(service=service)
            try:
                reply = health.Check(request, timeout=CHECK_TIMEOUT)
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    continue
                return False
            return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)
        return False

    def wait_ready(self, timeout: float = 60.0) -> None:
        """Waits until a front node reports SERVING.

        Raises UnavailableError if none does within `timeout` seconds.
        """
        deadline = Deadline.after(timeout)
        while not self.available():
            if deadline.left() <= 0:
                raise UnavailableError(
                    f"no front node at {self.address} served within {timeout:g} s"
                )
            time.sleep(CHECK_INTERVAL)

    def close(self) -> None:
        """Closes the connection, and cancels its running calls."""
        self._channel.close()

    def run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        return call.result(self.reply(call, timeout, request_id_metadata(request_id)))

    def reply(self, call: Call[Result], timeout: float, id_metadata: Metadata) -> Any:
        """Sends a call, and returns the reply message. Raises WinnowError if the call fails."""
        options = self._options.arguments(timeout, id_metadata)
        method = call.method_of(self._channel.newest)
        set_index(call.request, self.index)
        set_tenant(call.request, self.tenant)
        try:
            # Ctrl-C also ends the work on the shards: gRPC cancels an interrupted call. Never use
            # `method.future` here: with it, Ctrl-C at the start of a call makes `close` hang
            return method(call.request, **options)
        except grpc.RpcError as error:
            raise call_error(error, self.address, timeout, id_metadata) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
