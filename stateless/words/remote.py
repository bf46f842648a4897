"""Fetches the word counts of a shard over gRPC, as a `WordSource`."""

import grpc

from winnow.convert import shard_feed as convert
from winnow.deadline import Deadline
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.rpc import call_metadata
from winnow.rpc.deadline import timeout
from winnow.rpc.status import error_of_node
from winnow.v1 import shard_feed_pb2, shard_feed_pb2_grpc


class RemoteWordCounts:
    """Fetches word counts from a content node. Its errors are raised as a WinnowError."""

    def __init__(
        self, channel: grpc.aio.Channel, address: str, shard: int, index_id: str = ""
    ) -> None:
        """`index_id` is the id of a named index; empty for the default index of the node."""
        self._stub = shard_feed_pb2_grpc.ShardFeedServiceStub(channel)
        self._address, self._shard, self._index_id = address, shard, index_id

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        """Returns the word counts of the whole index when it was built."""
        return convert.built_of_message(await self._fetch(deadline, changes_only=False))

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Returns how the writes to this shard have changed the counts since the build."""
        return convert.changes_of_message(await self._fetch(deadline, changes_only=True))

    async def _fetch(
        self, deadline: Deadline, changes_only: bool
    ) -> shard_feed_pb2.GetWordCountsResponse:
        request = shard_feed_pb2.GetWordCountsRequest(changes_only=changes_only, shard=self._shard)
        try:
            return await self._stub.GetWordCounts(
                request,
                timeout=timeout(deadline),
                metadata=call_metadata.build(index_id=self._index_id),
            )
        except grpc.aio.AioRpcError as error:
            raise error_of_node(error, self._address) from error
