"""Serves `winnow.v1.ShardPassageService`: converts requests, calls a shard, converts results."""

from typing import Any

from winnow.convert import shard_passage as convert
from winnow.deadline import Deadline
from winnow.domain.listing import (
    CountRequest,
    DocumentListing,
    PassageListing,
    PassageLookup,
    TenantListing,
    TenantWordsRequest,
)
from winnow.passage_source import PassageSource
from winnow.rpc import index_header
from winnow.rpc.client_key import client_of
from winnow.rpc.deadline import unexpired_deadline_of
from winnow.searcher import ContentNode, NodeOfIndex
from winnow.shard_service.limits import check_filter, check_ids, check_passages
from winnow.v1 import shard_passage_pb2, shard_passage_pb2_grpc

PASSAGE_SERVICE = "winnow.v1.ShardPassageService"


class ShardPassageServicer(shard_passage_pb2_grpc.ShardPassageServiceServicer):
    """Serves the passages of the shards of any `ContentNode`."""

    def __init__(
        self, node: ContentNode, default_deadline: float, of_index: NodeOfIndex | None = None
    ) -> None:
        """`of_index` returns the shards of an index by its id; None if `node` has only one."""
        self._node, self._default_deadline, self._of_index = node, default_deadline, of_index

    async def ListShardPassages(  # noqa: N802
        self, request: shard_passage_pb2.ListShardPassagesRequest, context: Any
    ) -> shard_passage_pb2.ListShardPassagesResponse:
        check_passages(request.limit, "limit")
        check_filter(request.filter)
        listing = convert.request_of_message(PassageListing, request, client_of(context))
        page = await self._source(request, context).fetch(listing, self._deadline(context))
        return convert.page_to_message(page, listing.fields)

    async def GetShardPassages(  # noqa: N802
        self, request: shard_passage_pb2.GetShardPassagesRequest, context: Any
    ) -> shard_passage_pb2.GetShardPassagesResponse:
        check_ids(len(request.ids))
        lookup = convert.request_of_message(PassageLookup, request, client_of(context))
        found = await self._source(request, context).fetch(lookup, self._deadline(context))
        return convert.found_to_message(found, lookup.fields)

    async def CountShardPassages(  # noqa: N802
        self, request: shard_passage_pb2.CountShardPassagesRequest, context: Any
    ) -> shard_passage_pb2.CountShardPassagesResponse:
        check_filter(request.filter)
        wanted = convert.request_of_message(CountRequest, request, client_of(context))
        count = await self._source(request, context).fetch(wanted, self._deadline(context))
        return convert.count_to_message(count)

    async def ListShardDocuments(  # noqa: N802
        self, request: shard_passage_pb2.ListShardDocumentsRequest, context: Any
    ) -> shard_passage_pb2.ListShardDocumentsResponse:
        check_passages(request.limit, "limit")
        check_filter(request.filter)
        listing = convert.request_of_message(DocumentListing, request, client_of(context))
        page = await self._source(request, context).fetch(listing, self._deadline(context))
        return convert.documents_to_message(page)

    async def ListShardTenants(  # noqa: N802
        self, request: shard_passage_pb2.ListShardTenantsRequest, context: Any
    ) -> shard_passage_pb2.ListShardTenantsResponse:
        check_passages(request.limit, "limit")
        listing = convert.request_of_message(TenantListing, request, client_of(context))
        page = await self._source(request, context).fetch(listing, self._deadline(context))
        return convert.tenants_to_message(page)

    async def CountShardWords(  # noqa: N802
        self, request: shard_passage_pb2.CountShardWordsRequest, context: Any
    ) -> shard_passage_pb2.CountShardWordsResponse:
        check_passages(len(request.token_ids), "token_ids")
        wanted = convert.request_of_message(TenantWordsRequest, request, client_of(context))
        counts = await self._source(request, context).fetch(wanted, self._deadline(context))
        return convert.words_to_message(counts)

    def _source(self, request: Any, context: Any) -> PassageSource:
        node = self._node
        if self._of_index is not None:
            node = self._of_index(index_header.of_metadata(context.invocation_metadata()))
        return node.searcher(request.shard.shard).passages

    def _deadline(self, context: Any) -> Deadline:
        return unexpired_deadline_of(context, self._default_deadline)
