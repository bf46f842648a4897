"""`winnow.v1.ShardService`: convert, call, convert.

Answers while no shard is loaded, and after the node has left.
"""

from dataclasses import replace
from typing import Any

from winnow.content_node.validation import (
    check_answer_tokens,
    check_depth,
    check_hits,
    check_passages,
)
from winnow.convert import shard as convert
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion
from winnow.errors import LeavingError, NotLoadedError, UnavailableError
from winnow.rpc import client_key
from winnow.rpc.deadline import deadline_of
from winnow.rpc.server import KIB
from winnow.searcher import Searcher
from winnow.v1 import shard_pb2, shard_pb2_grpc

SERVICE = "winnow.v1.ShardService"
LARGEST = 256 * KIB
"""Bytes of a message: a thousand hits and a question with a long vector take half of it."""


class ShardServicer(shard_pb2_grpc.ShardServiceServicer):
    """Serves any `Searcher` once it is loaded."""

    def __init__(self, default_deadline: float) -> None:
        self._default_deadline = default_deadline
        self._searcher: Searcher | None = None
        self._fault = self._withdrawn = ""
        self._leaving = False

    def serve(self, searcher: Searcher) -> None:
        """Sends calls to `searcher`."""
        self._searcher = searcher

    def fail(self, fault: str) -> None:
        """Answers every call with the reason why there is no shard."""
        self._fault = fault

    def withdraw(self, reason: str) -> None:
        """Answers GetShardInfo with a reason why not to use the shard; other calls go on. An empty
        reason takes it back.
        """
        self._withdrawn = reason

    def leave(self) -> None:
        """From now on who asks for the shard is told that it leaves; its other calls go on."""
        self._leaving = True

    async def GetShardInfo(  # noqa: N802
        self, request: shard_pb2.GetShardInfoRequest, context: Any
    ) -> shard_pb2.GetShardInfoResponse:
        if self._leaving:
            raise LeavingError("the node is leaving")
        if self._withdrawn:
            raise NotLoadedError(self._withdrawn)
        info = await self._ready().info(self._deadline(context))
        return convert.info_to_message(info)

    async def Retrieve(  # noqa: N802
        self, request: shard_pb2.RetrieveRequest, context: Any
    ) -> shard_pb2.RetrieveResponse:
        depth = convert.depth_of_message(request)
        check_depth(depth)
        found = await self._ready().retrieve(
            _question(request, context), depth, self._deadline(context)
        )
        return convert.retrieved_to_message(found)

    async def Read(  # noqa: N802
        self, request: shard_pb2.ReadRequest, context: Any
    ) -> shard_pb2.ReadResponse:
        check_passages(len(request.hits), "hits")
        check_answer_tokens(request.max_answer_tokens)
        hits = convert.hits_of_messages(request.hits, request.generation)
        check_hits(hits)
        read = await self._ready().read(
            _question(request, context),
            hits,
            request.max_answer_tokens,
            self._deadline(context),
        )
        return convert.read_to_message(read)

    async def Search(  # noqa: N802
        self, request: shard_pb2.SearchRequest, context: Any
    ) -> shard_pb2.SearchResponse:
        depth = convert.depth_of_message(request)
        check_depth(depth)
        check_answer_tokens(request.max_answer_tokens)
        read = await self._ready().search(
            _question(request, context),
            depth,
            request.max_answer_tokens,
            self._deadline(context),
        )
        return convert.search_to_message(read)

    def _ready(self) -> Searcher:
        if self._fault:
            raise NotLoadedError(self._fault)
        if self._searcher is None:
            raise UnavailableError("the shard is still loading")
        return self._searcher

    def _deadline(self, context: Any) -> Deadline:
        deadline = deadline_of(context, self._default_deadline)
        deadline.check("the call began")
        return deadline


def _question(request: Any, context: Any) -> EncodedQuestion:
    """Returns the question with its client's key, which a front passed on."""
    client = client_key.of_metadata(context.invocation_metadata())
    return replace(convert.question_of_message(request.question), client=client)
