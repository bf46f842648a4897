"""Calls a content node for the passages of one of its shards."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import grpc

from winnow.convert import shard_passage as convert
from winnow.deadline import Deadline
from winnow.domain.listing import (
    CountRequest,
    DocumentListing,
    DocumentPage,
    FoundPassages,
    PassageCount,
    PassageListing,
    PassageLookup,
    PassagePage,
)
from winnow.errors import NotServedError
from winnow.rpc import call_metadata
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.status import error_of_node
from winnow.v1 import shard_passage_pb2_grpc

Reply = TypeVar("Reply")
_OLD_NODE = "a node is of an older version, which cannot list passages: update all nodes"


class CountedNode(Protocol):
    """A content node behind gRPC that counts its running calls."""

    @property
    def address(self) -> str:
        """HOST:PORT of the node."""

    @property
    def passages_stub(self) -> "shard_passage_pb2_grpc.ShardPassageServiceAsyncStub":
        """The stub of the service."""

    def counted(self) -> Any:
        """Counts a call within the context."""


class RemotePassages:
    """A `PassageSource` of one shard of a node. It sends deadlines, request ids and client keys."""

    def __init__(self, node: CountedNode, shard: int | None) -> None:
        """`shard` is None for the only shard of an older node, which lacks the calls."""
        self._node, self._shard = node, shard

    async def page(self, request: PassageListing, deadline: Deadline) -> PassagePage:
        """Returns the next passages that match a filter, in the order of their ids."""
        message = convert.listing_to_message(request, self._number)
        stub = self._node.passages_stub
        reply = await self._call(stub.ListShardPassages, message, request.client, deadline)
        return convert.page_of_message(reply)

    async def look_up(self, request: PassageLookup, deadline: Deadline) -> FoundPassages:
        """Returns the passages with the given ids."""
        message = convert.lookup_to_message(request, self._number)
        stub = self._node.passages_stub
        reply = await self._call(stub.GetShardPassages, message, request.client, deadline)
        return convert.found_of_message(reply)

    async def count(self, request: CountRequest, deadline: Deadline) -> PassageCount:
        """Counts the passages that match a filter."""
        message = convert.count_request_to_message(request, self._number)
        stub = self._node.passages_stub
        reply = await self._call(stub.CountShardPassages, message, request.client, deadline)
        return convert.count_of_message(reply)

    async def documents(self, request: DocumentListing, deadline: Deadline) -> DocumentPage:
        """Returns the next documents by name."""
        message = convert.document_listing_to_message(request, self._number)
        stub = self._node.passages_stub
        reply = await self._call(stub.ListShardDocuments, message, request.client, deadline)
        return convert.documents_of_message(reply)

    @property
    def _number(self) -> int:
        if self._shard is None:
            raise self._not_served()
        return self._shard

    def _not_served(self) -> NotServedError:
        return NotServedError(f"{self._node.address}: {_OLD_NODE}").with_public(_OLD_NODE)

    async def _call(
        self,
        method: Callable[..., Awaitable[Reply]],
        message: object,
        client: str,
        deadline: Deadline,
    ) -> Reply:
        """Sends a call, and returns the reply. Raises NotServedError if the node lacks the call."""
        try:
            with self._node.counted():
                return await reply_of(
                    method(message, timeout=timeout(deadline), metadata=call_metadata.build(client))
                )
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise self._not_served() from error
            raise error_of_node(error, self._node.address) from error
