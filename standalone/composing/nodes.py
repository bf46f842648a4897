"""The shards of this process, as a front's content nodes."""

import asyncio
from collections.abc import Mapping, Sequence

from winnow.content_node.admission import NodeLoad
from winnow.content_node.composing.shard import RunningShard
from winnow.resolving import Resolver
from winnow.stateless.cluster.membership import IndexIdentity
from winnow.stateless.cluster.node import Node
from winnow.stateless.feed.writers import OpenWriter


class LocalNodes:
    """Each shard is a content node whose address is the name of its directory."""

    form_timeout = 2.0
    """The front waits after the shards were loaded: long enough to poll each of them."""

    def __init__(self, shards: Mapping[str, RunningShard], load: NodeLoad) -> None:
        """`load` is the work of all `shards`."""
        self._shards, self._load = shards, load
        self.loaded = asyncio.Event()
        """Set once each shard is loaded, or cannot be: there is nothing to poll before."""

    def resolvers(self) -> Sequence[Resolver]:
        """One, which finds all shards."""
        return [_Local(frozenset(self._shards), self.loaded)]

    def open_node(self, address: str) -> Node:
        """The shard of that name. All its reads are of this front."""
        shard = self._shards[address]
        return Node(
            address,
            shard.served,
            _close,
            reads=lambda: self._load.reads_in_flight,
            words=shard.writer,
        )

    def open_writer(self, address: str, index: IndexIdentity, shard: int) -> OpenWriter:
        """The writer of the shard, which answers questions, so that it is loaded."""
        writer = self._shards[address].writer
        assert writer is not None
        return OpenWriter(writer, lambda: False, _close)


class _Local:
    """The addresses of all shards of the process."""

    target = "this process"

    def __init__(self, names: frozenset[str], loaded: asyncio.Event) -> None:
        self._names, self._loaded = names, loaded

    async def addresses(self) -> frozenset[str]:
        await self._loaded.wait()
        return self._names


async def _close() -> None:
    """The shard is closed at the end of the process."""
