"""Polls content nodes over gRPC, each with one call for all indexes of a front."""

import asyncio
import time
from collections.abc import Callable, Sequence

import grpc

from winnow.convert import shard as convert
from winnow.deadline import Clock, Deadline
from winnow.domain.shard import NodeReport
from winnow.errors import WinnowError
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.status import error_of_node
from winnow.stateless.cluster.node_clock import NodeClock
from winnow.stateless.replicas.remote import RemoteNode
from winnow.stateless.replicas.shared_polls import IndexPolls, SharedPolls
from winnow.v1 import shard_pb2, shard_pb2_grpc

OpenChannel = Callable[[str], grpc.aio.Channel]
"""Opens a channel to an address."""


class RemotePolls:
    """The polls of all content nodes of a front."""

    def __init__(self, open_channel: OpenChannel, clock: Clock = time.monotonic) -> None:
        """`clock` is that of `Discovery`."""
        self._open_channel, self._clock = open_channel, clock
        self._nodes: dict[str, PolledNode] = {}
        """The nodes by address."""

    def node(self, address: str) -> "PolledNode":
        """Returns the node at an address, which is opened for the first index."""
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = PolledNode(
                address, self._open_channel(address), self._clock
            )
        return node

    async def leave(self, address: str, member: IndexPolls[RemoteNode]) -> None:
        """Ends the membership of an index. The last one closes the channel of the polls."""
        member.leave()
        node = self._nodes[address]
        if node.polls.is_unused:
            del self._nodes[address]
            await node.channel.close()


class PolledNode:
    """A content node that is polled for several indexes at once."""

    def __init__(self, address: str, channel: grpc.aio.Channel, clock: Clock) -> None:
        self.channel, self._address = channel, address
        self._stub = shard_pb2_grpc.ShardServiceStub(channel)
        self.clock = NodeClock(clock)
        """The clock of the node."""
        self.polls = SharedPolls[RemoteNode](self._fetch, clock)

    async def _fetch(
        self, indexes: Sequence[RemoteNode], deadline: Deadline
    ) -> Sequence[NodeReport | WinnowError]:
        request = shard_pb2.ListShardsRequest(index_ids=(each.index_id for each in indexes))
        try:
            reply = await reply_of(self._stub.ListShards(request, timeout=timeout(deadline)))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise error_of_node(error, self._address) from error
            reply = shard_pb2.ListShardsResponse()
        if len(reply.indexes) != len(indexes):  # a node of an older version
            return await asyncio.gather(*(_report_alone(each, deadline) for each in indexes))
        self.clock.record(reply.clock_ms)
        return [
            _report_of(index, message)
            for index, message in zip(indexes, reply.indexes, strict=True)
        ]


def _report_of(index: RemoteNode, message: shard_pb2.IndexShards) -> NodeReport | WinnowError:
    try:
        report = convert.index_report_of_message(message, index.address)
    except WinnowError as error:
        return error
    index.record_report(report)
    return report


async def _report_alone(index: RemoteNode, deadline: Deadline) -> NodeReport | WinnowError:
    try:
        return await index.report(deadline)
    except WinnowError as error:
        return error
