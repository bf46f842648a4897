"""Presents the shards of this process to the front as one content node."""

import asyncio
from collections.abc import Sequence

from winnow.content_node.admission import NodeLoad
from winnow.content_node.served_shards import ServedShards
from winnow.errors import UnavailableError
from winnow.resolving import Resolver
from winnow.rpc.status import public_node_message
from winnow.shard_writer import WordSource
from winnow.stateless.cluster.membership import IndexIdentity
from winnow.stateless.cluster.node import Node
from winnow.stateless.feed.writers import OpenWriter

_ADDRESS = "this process"


class LocalNode:
    """A `NodeSource` with one content node, which has all shards of the process."""

    form_timeout = 2.0
    """Seconds that the front waits for the node once its shards are loaded."""

    def __init__(self, shards: ServedShards, load: NodeLoad) -> None:
        """`load` counts the work of all `shards`."""
        self._shards, self._load = shards, load
        self.loaded = asyncio.Event()
        """Set when every shard has been loaded or has failed to load. Polling starts then."""

    def resolvers(self) -> Sequence[Resolver]:
        """Returns one resolver, which finds the node."""
        return [_LocalResolver(self.loaded)]

    def open_node(self, address: str) -> Node:
        """Returns the node, which reads only for this front."""
        return Node(
            address,
            self._shards,
            _close,
            reads=lambda: self._load.reads_in_flight,
            words=self._word_source,
        )

    def open_writer(self, address: str, index: IndexIdentity, shard: int) -> OpenWriter:
        """Returns the writer of a shard. Raises UnavailableError if the shard is not loaded."""
        try:
            writing = self._shards.searcher(shard).writing
        except UnavailableError as error:
            error.with_public(public_node_message(error))  # the full message may name files
            raise
        return OpenWriter(writing.writer, lambda: False, _close)

    def _word_source(self, shard: int) -> WordSource:
        return self._shards.searcher(shard).writing.writer


class _LocalResolver:
    """A `Resolver` that finds the node once its shards are loaded."""

    target = _ADDRESS

    def __init__(self, loaded: asyncio.Event) -> None:
        self._loaded = loaded

    async def addresses(self) -> frozenset[str]:
        await self._loaded.wait()
        return frozenset({_ADDRESS})


async def _close() -> None:
    """Does nothing: the shards are closed at the end of the process."""
