"""Calls a content node for the passages of one of its shards."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import grpc

from winnow.convert import shard_passage as convert
from winnow.deadline import Deadline
from winnow.domain.listing import (
    CountRequest,
    DocumentListing,
    PassageListing,
    PassageLookup,
    Seen,
    ShardRequest,
    TenantListing,
    TenantWordsRequest,
)
from winnow.errors import NotServedError
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.status import error_of_node
from winnow.v1 import shard_passage_pb2_grpc

_CALLS: Mapping[type[ShardRequest[Any]], tuple[str, Callable[[Any], Any]]] = {
    PassageListing: ("ListShardPassages", convert.page_of_message),
    PassageLookup: ("GetShardPassages", convert.found_of_message),
    CountRequest: ("CountShardPassages", convert.count_of_message),
    DocumentListing: ("ListShardDocuments", convert.documents_of_message),
    TenantListing: ("ListShardTenants", convert.tenants_of_message),
    TenantWordsRequest: ("CountShardWords", convert.words_of_message),
}
"""The RPC of each request, and the conversion of its reply."""
_OLD_NODE = "a node is of an older version, which cannot list passages: update all nodes"


class CountedNode(Protocol):
    """A content node behind gRPC that counts its running calls."""

    @property
    def address(self) -> str:
        """HOST:PORT of the node."""

    @property
    def passages_stub(self) -> "shard_passage_pb2_grpc.ShardPassageServiceAsyncStub":
        """The stub of the service."""

    def count_call(self) -> Any:
        """Counts a call within the context."""

    def metadata(self, client: str) -> tuple[tuple[str, str], ...]:
        """Builds the metadata of a call on behalf of a client."""


class RemotePassages:
    """A `PassageSource` of one shard of a node. It sends deadlines, request ids and client keys."""

    def __init__(self, node: CountedNode, shard: int | None) -> None:
        """`shard` is None for the only shard of an older node, which lacks the calls."""
        self._node, self._shard = node, shard

    async def fetch(self, request: ShardRequest[Seen], deadline: Deadline) -> Seen:
        """Sends a request. Raises NotServedError if the node lacks the call."""
        if self._shard is None:
            raise self._not_served()
        name, result_of_message = _CALLS[type(request)]
        method = getattr(self._node.passages_stub, name)
        message = convert.request_to_message(request, self._shard)
        metadata = self._node.metadata(request.client)
        try:
            with self._node.count_call():
                reply = await reply_of(
                    method(message, timeout=timeout(deadline), metadata=metadata)
                )
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise self._not_served() from error
            raise error_of_node(error, self._node.address) from error
        result: Seen = result_of_message(reply)
        return result

    def _not_served(self) -> NotServedError:
        return NotServedError(f"{self._node.address}: {_OLD_NODE}").with_public(_OLD_NODE)
