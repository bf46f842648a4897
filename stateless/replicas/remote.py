"""A content node behind gRPC, and each of its shards as a `Searcher`."""

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import grpc

from winnow.convert import shard as convert
from winnow.deadline import Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import NodeReport, ShardInfo
from winnow.rpc import call_metadata
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.status import error_of_node
from winnow.searcher import Read, Retrieved
from winnow.v1 import shard_pb2, shard_pb2_grpc

Reply = TypeVar("Reply")


class RemoteNode:
    """A content node behind gRPC; counts the calls and the reads of all its shards."""

    def __init__(self, channel: grpc.aio.Channel, address: str) -> None:
        self.stub = shard_pb2_grpc.ShardServiceStub(channel)
        self.address = address
        self.calls = 0
        """Number of running calls, without polls."""
        self.reads = 0
        """Number of passages that are being read."""

    async def report(self, deadline: Deadline) -> NodeReport:
        """Returns the shards of the node; nodes of older versions serve one."""
        request = shard_pb2.ListShardsRequest()
        try:
            reply = await reply_of(self.stub.ListShards(request, timeout=timeout(deadline)))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise error_of_node(error, self.address) from error
            return NodeReport((await self.searcher(None).info(deadline),))
        return convert.report_of_message(reply, self.address)

    def searcher(self, shard: int | None) -> "RemoteSearcher":
        """Returns a searcher of one shard; None stands for the only shard of the node."""
        return RemoteSearcher(self, shard)

    @contextmanager
    def counted(self, reads: int = 0) -> Iterator[None]:
        """Counts a call that reads this number of passages."""
        self.calls += 1
        self.reads += reads
        try:
            yield
        finally:
            self.calls -= 1
            self.reads -= reads


class RemoteSearcher:
    """Calls a content node for one shard; sends deadlines, request ids and client keys."""

    def __init__(self, node: RemoteNode, shard: int | None) -> None:
        """`shard` is None for the only shard of a node."""
        self._node, self._stub, self._shard = node, node.stub, shard

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Which shard this is."""
        request = shard_pb2.GetShardInfoRequest(shard=self._shard)
        reply = await self._call(self._stub.GetShardInfo(request, timeout=timeout(deadline)))
        return convert.info_of_message(reply)

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Finds the shard's hits that could be among the cluster's best."""
        request = shard_pb2.RetrieveRequest(
            question=convert.question_to_message(question),
            passages=depth.passages,
            candidates=depth.candidates,
            by_words=depth.by_words,
            filter=depth.where,
            after=depth.after,
            shard=self._shard,
        )
        with self._node.counted():
            reply = await self._call(
                self._stub.Retrieve(
                    request, timeout=timeout(deadline), metadata=_metadata(question)
                )
            )
        return convert.retrieved_of_message(reply)

    async def read(
        self,
        question: EncodedQuestion,
        hits: Sequence[Hit],
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Reads passages that `retrieve` named."""
        request = shard_pb2.ReadRequest(
            question=convert.question_to_message(question),
            hits=convert.hits_to_messages(hits),
            max_answer_tokens=max_answer_tokens,
            generation=convert.generation_of(hits),
            shard=self._shard,
        )
        with self._node.counted(len(hits)):
            reply = await self._call(
                self._stub.Read(request, timeout=timeout(deadline), metadata=_metadata(question))
            )
        return convert.read_of_message(reply)

    async def search(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Retrieves and reads in one round trip."""
        request = shard_pb2.SearchRequest(
            question=convert.question_to_message(question),
            passages=depth.passages,
            candidates=depth.candidates,
            max_answer_tokens=max_answer_tokens,
            by_words=depth.by_words,
            filter=depth.where,
            after=depth.after,
            shard=self._shard,
        )
        with self._node.counted(depth.passages):
            reply = await self._call(
                self._stub.Search(request, timeout=timeout(deadline), metadata=_metadata(question))
            )
        return convert.search_of_message(reply)

    async def _call(self, call: Awaitable[Reply]) -> Reply:
        try:
            return await reply_of(call)
        except grpc.aio.AioRpcError as error:
            raise error_of_node(error, self._node.address) from error


def _metadata(question: EncodedQuestion) -> tuple[tuple[str, str], ...]:
    return call_metadata.build(question.client)
