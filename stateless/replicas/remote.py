"""A shard behind gRPC, as a `Searcher`."""

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import grpc

from winnow.convert import shard as convert
from winnow.deadline import Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import ShardInfo
from winnow.rpc import call_metadata
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.status import error_of_node
from winnow.searcher import Read, Retrieved
from winnow.v1 import shard_pb2, shard_pb2_grpc

Reply = TypeVar("Reply")


class RemoteSearcher:
    """Calls a content node; sends deadlines, request ids and client keys with each call."""

    def __init__(self, channel: grpc.aio.Channel, address: str) -> None:
        self._stub = shard_pb2_grpc.ShardServiceStub(channel)
        self.address = address
        self.calls = 0
        """Number of running calls, without polls."""
        self.reads = 0
        """Number of passages that are being read."""

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Which shard this is."""
        reply = await self._call(
            self._stub.GetShardInfo(shard_pb2.GetShardInfoRequest(), timeout=timeout(deadline))
        )
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
        )
        with self._counted():
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
        )
        with self._counted(len(hits)):
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
        )
        with self._counted(depth.passages):
            reply = await self._call(
                self._stub.Search(request, timeout=timeout(deadline), metadata=_metadata(question))
            )
        return convert.search_of_message(reply)

    @contextmanager
    def _counted(self, reads: int = 0) -> Iterator[None]:
        self.calls += 1
        self.reads += reads
        try:
            yield
        finally:
            self.calls -= 1
            self.reads -= reads

    async def _call(self, call: Awaitable[Reply]) -> Reply:
        try:
            return await reply_of(call)
        except grpc.aio.AioRpcError as error:
            raise error_of_node(error, self.address) from error


def _metadata(question: EncodedQuestion) -> tuple[tuple[str, str], ...]:
    return call_metadata.build(question.client)
