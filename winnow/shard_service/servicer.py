"""Serves `winnow.v1.ShardService`: converts each request, calls the node, converts the result."""

from dataclasses import replace
from typing import Any

import grpc
import structlog

from winnow.convert import shard as convert
from winnow.convert.by_name import optional
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion
from winnow.domain.shard import NodeReport
from winnow.errors import WinnowError
from winnow.rpc import index_header
from winnow.rpc.client_key import client_of
from winnow.rpc.deadline import unexpired_deadline_of
from winnow.rpc.server import KIB
from winnow.rpc.status import code_of
from winnow.searcher import ContentNode, NodeOfIndex, RequestedShard, Retrieved, Searcher
from winnow.shard_service.limits import (
    check_answer_tokens,
    check_depth,
    check_hits,
    check_indexes,
    check_passages,
    check_shards,
)
from winnow.shard_service.node_time import now_ms
from winnow.v1 import shard_pb2, shard_pb2_grpc

_log = structlog.get_logger("winnow.shard_service")
SERVICE = "winnow.v1.ShardService"
MAX_MESSAGE_BYTES = 256 * KIB
"""Maximum size of a message, in bytes. A thousand hits and a question take half of it."""


class ShardServicer(shard_pb2_grpc.ShardServiceServicer):
    """Serves the shards of any `ContentNode`."""

    def __init__(
        self, node: ContentNode, default_deadline: float, of_index: NodeOfIndex | None = None
    ) -> None:
        """`of_index` returns the shards of an index by its id; None if `node` has only one."""
        self._node, self._default_deadline, self._of_index = node, default_deadline, of_index

    async def ListShards(  # noqa: N802
        self, request: shard_pb2.ListShardsRequest, context: Any
    ) -> shard_pb2.ListShardsResponse:
        check_indexes(request.index_ids)
        deadline = self._deadline(context)
        if request.index_ids and self._of_index is not None:
            reports = [
                await _report_of(self._of_index(each), deadline) for each in request.index_ids
            ]
            message = shard_pb2.ListShardsResponse(
                indexes=map(convert.index_report_to_message, reports)
            )
        else:
            message = convert.report_to_message(await self._node_of(context).report(deadline))
        message.clock_ms = now_ms()
        return message

    async def GetShardInfo(  # noqa: N802
        self, request: shard_pb2.GetShardInfoRequest, context: Any
    ) -> shard_pb2.GetShardInfoResponse:
        info = await self._searcher(request, context).info(self._deadline(context))
        return convert.info_to_message(info)

    async def Retrieve(  # noqa: N802
        self, request: shard_pb2.RetrieveRequest, context: Any
    ) -> shard_pb2.RetrieveResponse:
        depth = convert.depth_of_message(request)
        check_depth(depth)
        found = await self._searcher(request, context).retrieve(
            _question(request, context), depth, self._deadline(context)
        )
        return convert.retrieved_to_message(found)

    async def RetrieveFromShards(  # noqa: N802
        self, request: shard_pb2.RetrieveFromShardsRequest, context: Any
    ) -> shard_pb2.RetrieveFromShardsResponse:
        check_shards([each.shard for each in request.shards])
        depth = convert.depth_of_message(request.request)
        check_depth(depth)
        question, deadline = _question(request.request, context), self._deadline(context)
        shards = [RequestedShard(each.shard, each.after) for each in request.shards]
        results = await self._node_of(context).retrieve(question, depth, shards, deadline)
        return shard_pb2.RetrieveFromShardsResponse(
            results=(
                convert.result_to_message(_result_of(requested.shard, result))
                for requested, result in zip(shards, results, strict=True)
            )
        )

    async def Read(  # noqa: N802
        self, request: shard_pb2.ReadRequest, context: Any
    ) -> shard_pb2.ReadResponse:
        check_passages(len(request.hits), "hits")
        hits = convert.hits_of_messages(request.hits, request.generation)
        check_hits(hits)
        question = _question_to_read(request, context)
        read = await self._searcher(request, context).read(question, hits, self._deadline(context))
        return convert.read_to_message(read)

    async def Search(  # noqa: N802
        self, request: shard_pb2.SearchRequest, context: Any
    ) -> shard_pb2.SearchResponse:
        depth = convert.depth_of_message(request)
        check_depth(depth)
        question = _question_to_read(request, context)
        read = await self._searcher(request, context).search(
            question, depth, self._deadline(context)
        )
        return convert.read_to_search_response(read)

    def _searcher(self, request: Any, context: Any) -> Searcher:
        return self._node_of(context).searcher(optional(request, "shard"))

    def _node_of(self, context: Any) -> ContentNode:
        """Returns the shards of the index that the call names."""
        if self._of_index is None:
            return self._node
        return self._of_index(index_header.of_metadata(context.invocation_metadata()))

    def _deadline(self, context: Any) -> Deadline:
        return unexpired_deadline_of(context, self._default_deadline)


async def _report_of(node: ContentNode, deadline: Deadline) -> NodeReport | WinnowError:
    """Returns the shards of one of several indexes, or the error that the caller gets for it."""
    try:
        return await node.report(deadline)
    except WinnowError as error:
        return error
    except Exception:  # noqa: BLE001 (the other indexes are listed)
        _log.exception("shards of an index could not be listed")
        return WinnowError()


def _result_of(shard: int, result: Retrieved | Exception) -> Retrieved | WinnowError:
    """Returns the result of a shard, or the error that the caller gets.

    Logs an unexpected error, because the caller gets no details of it.
    """
    if isinstance(result, Retrieved):
        return result
    error = result if isinstance(result, WinnowError) else WinnowError()
    if code_of(error) is grpc.StatusCode.INTERNAL:
        _log.error("retrieval failed", shard=shard, error=str(result), exc_info=result)
    return error


def _question_to_read(request: Any, context: Any) -> EncodedQuestion:
    check_answer_tokens(request.max_answer_tokens)
    return replace(_question(request, context), max_answer_tokens=request.max_answer_tokens)


def _question(request: Any, context: Any) -> EncodedQuestion:
    """Returns the question, with the client key that the front sends as metadata."""
    client = client_of(context)
    return replace(convert.question_of_message(request.question), client=client)
