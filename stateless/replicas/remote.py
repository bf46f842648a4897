"""Calls a content node over gRPC, and makes each of its shards a `Searcher`."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import grpc

from winnow.convert import shard as convert
from winnow.deadline import Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import NodeReport, ShardInfo
from winnow.errors import UnavailableError, WinnowError
from winnow.rpc import call_metadata, index_header
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.status import error_of_node
from winnow.searcher import Read, RequestedShard, Retrieved
from winnow.stateless.replicas.passages_remote import RemotePassages
from winnow.stateless.replicas.shared_retrieval import SharedRetrieval
from winnow.v1 import shard_passage_pb2_grpc, shard_pb2, shard_pb2_grpc

Reply = TypeVar("Reply")


class RemoteNode:
    """A content node behind gRPC. It counts the calls and the reads of all its shards."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        address: str,
        index_id: str = "",
        on_clock: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`index_id` is the id of a named index; empty for the default index of the node.

        `on_clock` is called with the node's clock in milliseconds when the node has replied to a
        poll; with 0 by an older node.
        """
        self.index_id = index_id
        self._on_clock = on_clock
        self.stub = shard_pb2_grpc.ShardServiceStub(channel)
        self.passages_stub = shard_passage_pb2_grpc.ShardPassageServiceStub(channel)
        self.address = address
        self.calls = 0
        """Number of running calls, without polls. Each retrieval of a shared call counts as one."""
        self.reads = 0
        """Number of passages that this front is reading on the node."""
        self._shared = SharedRetrieval(self.retrieve)
        self._served: dict[int, int] = {}
        """Number of the last write that each shard is known to have, by shard."""

    async def report(self, deadline: Deadline) -> NodeReport:
        """Returns the shards of the node. A node of an older version serves a single shard."""
        request = shard_pb2.ListShardsRequest()
        try:
            reply = await reply_of(
                self.stub.ListShards(
                    request,
                    timeout=timeout(deadline),
                    metadata=index_header.outgoing_metadata(self.index_id),
                )
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise error_of_node(error, self.address) from error
            return self._of_index(NodeReport((await self.searcher(None).info(deadline),)))
        self._on_clock(reply.clock_ms)
        report = self._of_index(convert.report_of_message(reply, self.address))
        self.record_report(report)
        return report

    def record_report(self, report: NodeReport) -> None:
        """Records which writes the shards have, from a reply that has just arrived."""
        self._served = {info.shard: info.sequence for info in report.infos}

    def _of_index(self, report: NodeReport) -> NodeReport:
        """Leaves out the shards of other indexes, which an older node reports in any case."""
        others = any(info.index_id != self.index_id for info in report.infos)
        if not self.index_id or not others:
            return report
        return replace(
            report,
            infos=tuple(info for info in report.infos if info.index_id == self.index_id),
            faults=(),
        )

    def metadata(self, client: str) -> tuple[tuple[str, str], ...]:
        """Builds the metadata of a call on behalf of a client."""
        return call_metadata.build(client, self.index_id)

    def searcher(self, shard: int | None) -> "RemoteSearcher":
        """Returns the searcher of one shard; None means the only shard of an older node."""
        return RemoteSearcher(self, shard)

    async def retrieve_from(
        self, shard: int, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Retrieves from a shard, in one call with other shards of the same question.

        A shard that may wait for a write is called alone, so that the other shards need not wait.
        """
        if depth.after > self._served.get(shard, 0):
            retrieved = await self.searcher(shard).retrieve_alone(question, depth, deadline)
        else:
            with self.count_call():  # the channel must not close before the call is sent
                retrieved = await self._shared.retrieve(shard, question, depth, deadline)
        # a poll may have replied meanwhile
        self._served[shard] = max(self._served.get(shard, 0), retrieved.sequence)
        return retrieved

    async def retrieve(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> Sequence[Retrieved | WinnowError]:
        """Retrieves from several shards in one call, as `ContentNode.retrieve` specifies."""
        if len(shards) == 1:
            ((shard, after),) = shards
            alone = replace(depth, after=after)
            return [await self.searcher(shard).retrieve_alone(question, alone, deadline)]
        request = shard_pb2.RetrieveFromShardsRequest(
            request=_retrieve_request(question, depth),
            shards=(shard_pb2.RequestedShard(**each._asdict()) for each in shards),
        )
        with self.count_call():
            reply = await self.call(
                self.stub.RetrieveFromShards(
                    request, timeout=timeout(deadline), metadata=self.metadata(question.client)
                )
            )
        if len(reply.results) != len(shards):
            raise UnavailableError(
                f"{self.address} returned {len(reply.results)} results for {len(shards)} shards"
            ).with_public("a node sent an invalid reply")
        return [convert.result_of_message(each, self.address) for each in reply.results]

    async def call(self, call: Awaitable[Reply]) -> Reply:
        """Awaits the reply of a call to the node. Its error is raised as a WinnowError."""
        try:
            return await reply_of(call)
        except grpc.aio.AioRpcError as error:
            raise error_of_node(error, self.address) from error

    @contextmanager
    def count_call(self, reads: int = 0) -> Iterator[None]:
        """Counts a call, and the passages that it reads, within the context."""
        self.calls += 1
        self.reads += reads
        try:
            yield
        finally:
            self.calls -= 1
            self.reads -= reads


class RemoteSearcher:
    """A `Searcher` that calls a content node for one of its shards.

    It sends deadlines, request ids and client keys with its calls.
    """

    def __init__(self, node: RemoteNode, shard: int | None) -> None:
        """`shard` is None for the only shard of an older node."""
        self._node, self._stub, self._shard = node, node.stub, shard
        self.passages = RemotePassages(node, shard)

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns what the shard is and holds."""
        request = shard_pb2.GetShardInfoRequest(shard=self._shard)
        metadata = index_header.outgoing_metadata(self._node.index_id)
        reply = await self._node.call(
            self._stub.GetShardInfo(request, timeout=timeout(deadline), metadata=metadata)
        )
        return convert.info_of_message(reply)

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Finds the shard's hits that could be among the cluster's best."""
        if self._shard is None:
            return await self.retrieve_alone(question, depth, deadline)
        return await self._node.retrieve_from(self._shard, question, depth, deadline)

    async def retrieve_alone(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Retrieves in a call for this shard alone."""
        request = _retrieve_request(question, depth)
        if self._shard is not None:
            request.shard = self._shard
        with self._node.count_call():
            reply = await self._node.call(
                self._stub.Retrieve(
                    request,
                    timeout=timeout(deadline),
                    metadata=self._node.metadata(question.client),
                )
            )
        return convert.retrieved_of_message(reply)

    async def read(
        self, question: EncodedQuestion, hits: Sequence[Hit], deadline: Deadline
    ) -> Read:
        """Reads the passages of hits that `retrieve` returned."""
        request = shard_pb2.ReadRequest(
            question=convert.question_to_message(question),
            hits=convert.hits_to_messages(hits),
            max_answer_tokens=question.max_answer_tokens,
            generation=convert.generation_of(hits),
            shard=self._shard,
        )
        with self._node.count_call(len(hits)):
            reply = await self._node.call(
                self._stub.Read(
                    request,
                    timeout=timeout(deadline),
                    metadata=self._node.metadata(question.client),
                )
            )
        return convert.read_of_message(reply)

    async def search(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Read:
        """Retrieves and reads in one round trip."""
        request = shard_pb2.SearchRequest(
            question=convert.question_to_message(question),
            passages=depth.passages,
            candidates=depth.candidates,
            max_answer_tokens=question.max_answer_tokens,
            by_words=depth.by_words,
            filter=depth.where,
            after=depth.after,
            shard=self._shard,
        )
        with self._node.count_call(depth.passages):
            reply = await self._node.call(
                self._stub.Search(
                    request,
                    timeout=timeout(deadline),
                    metadata=self._node.metadata(question.client),
                )
            )
        return convert.read_of_search_response(reply)


def _retrieve_request(
    question: EncodedQuestion, depth: RetrievalDepth
) -> shard_pb2.RetrieveRequest:
    return shard_pb2.RetrieveRequest(
        question=convert.question_to_message(question),
        passages=depth.passages,
        candidates=depth.candidates,
        by_words=depth.by_words,
        filter=depth.where,
        after=depth.after,
    )
