"""Where a front gets its content nodes from: gRPC targets, or shards of the same process."""

from collections.abc import Sequence
from functools import partial
from typing import Protocol
from weakref import WeakValueDictionary

from winnow.deadline import Deadline
from winnow.resolving import Resolver, resolver
from winnow.rpc.channel import open_channel, open_unshared
from winnow.shard_service.remote import RemoteShardWriter
from winnow.stateless.cluster.membership import IndexIdentity
from winnow.stateless.cluster.node import Node
from winnow.stateless.cluster.node_clock import NodeClock
from winnow.stateless.composing.front import Front
from winnow.stateless.feed.writers import OpenWriter
from winnow.stateless.replicas.polls_remote import RemotePolls
from winnow.stateless.replicas.remote import RemoteNode
from winnow.stateless.words.remote import RemoteWordCounts


class NodeSource(Protocol):
    """Finds content nodes and opens connections to them.

    `RemoteNodes` implements it for gRPC, and `LocalNode` of `winnow.standalone` for the shards of
    the same process.
    """

    @property
    def form_timeout(self) -> float:
        """Seconds to wait for all shards before the front serves the shards that it has found."""

    def resolvers(self) -> Sequence[Resolver]:
        """Returns the resolvers of the addresses of all content nodes."""

    def open_node(self, address: str) -> Node:
        """Opens a connection for questions to the content node at an address."""

    def open_writer(self, address: str, index: IndexIdentity, shard: int) -> OpenWriter:
        """Opens a writer to one shard of the content node at an address."""


class RemoteNodes:
    """The `NodeSource` of content nodes behind gRPC, at the targets of --shards and --fronts."""

    def __init__(self, front: Front, index_id: str = "", polls: RemotePolls | None = None) -> None:
        """`index_id` is the id of a named index; empty for the default index of the nodes.

        `polls` polls the nodes for all named indexes; None to poll them for this index alone.
        """
        self._polls = polls
        self._index_id = index_id
        self._targets = [*front.settings.shards, *front.settings.fronts]
        self._peers = front.access.peers
        self.form_timeout = front.settings.form_timeout
        self._fingerprint = front.bundle.manifest.encoding_fingerprint
        self._clocks = WeakValueDictionary[str, NodeClock]()
        """The clocks of the nodes that are open, by address."""

    def resolvers(self) -> Sequence[Resolver]:
        """Returns a resolver for each target."""
        return [resolver(target) for target in self._targets]

    def open_node(self, address: str) -> Node:
        """Opens a channel to a node, which is closed once the node was removed and is idle."""
        channel = open_channel(address, self._peers)
        polled = self._polls.node(address) if self._polls is not None else None
        clock = self._clocks[address] = polled.clock if polled is not None else NodeClock()
        remote = RemoteNode(channel, address, self._index_id, clock.record)
        member = polled.polls.join(remote) if polled is not None else None

        async def close() -> None:
            if self._polls is not None and member is not None:
                await self._polls.leave(address, member)
            await channel.close()

        return Node(
            address,
            remote,
            close,
            reads=lambda: remote.reads,
            busy=lambda: remote.calls > 0,
            words=lambda shard: RemoteWordCounts(channel, address, shard, self._index_id),
            polls=member,
        )

    def open_writer(self, address: str, index: IndexIdentity, shard: int) -> OpenWriter:
        """Opens a separate channel, so that writes never delay questions."""
        channel = open_unshared(address, self._peers)
        writer = RemoteShardWriter(
            channel=channel,
            address=address,
            index_id=index.index_id,
            shard=shard,
            fingerprint=self._fingerprint,
            is_named=bool(self._index_id),
            expiry=partial(self._expiry, address),
        )
        return OpenWriter(writer, lambda: writer.calls > 0, channel.close)

    def _expiry(self, address: str, deadline: Deadline) -> int | None:
        """Returns when the clock of a node shows a deadline; None if its clock is not known."""
        clock = self._clocks.get(address)
        return clock.milliseconds_at(deadline) if clock is not None else None
