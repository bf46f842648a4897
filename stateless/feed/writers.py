"""The writers of the index: found by shard, and opened when they are needed.

Uses the same cluster view as questions. Does not know the protocol for writing to a node.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from winnow.domain.shard import ShardInfo
from winnow.errors import UnavailableError
from winnow.shard_writer import ShardWriter
from winnow.stateless.cluster.membership import ClusterView, IndexIdentity
from winnow.stateless.feed.targets import BEGINS, target


@dataclass(frozen=True, slots=True)
class OpenWriter:
    """The connection to a node that takes writes."""

    writer: ShardWriter
    busy: Callable[[], bool]
    """Whether calls are in hand."""
    close: Callable[[], Awaitable[None]]


Open = Callable[[str, IndexIdentity, int], OpenWriter]
"""Given an address, the index, and the number of a shard."""
_Key = tuple[str, IndexIdentity, int]


class Writers:
    """Writers of the shards of the index that is served."""

    def __init__(
        self,
        view: Callable[[], ClusterView],
        present: Callable[[], Mapping[str, ShardInfo]],
        open_: Open,
    ) -> None:
        """`view` gives the shards that are served now; `present` the last report of every node, by
        address.
        """
        self._view, self._present, self._open = view, present, open_
        self._opened: dict[_Key, OpenWriter] = {}
        self._worked: dict[int, str] = {}

    @property
    def shards(self) -> int:
        """The number of shards; raises UnavailableError if no shard has been found yet."""
        identity = self._view().identity
        if identity is None:
            raise UnavailableError("no shard of the index has been found yet: try again")
        return identity.shards

    def address(self, shard: int, tried: Sequence[str] = ()) -> str:
        """The node that takes the writes of a shard: the one that took the last writes, unless it
        was tried. Raises as `target` does.
        """
        view = self._view()
        index = view.identity.index_id if view.identity else ""
        logs = {
            address: info.log_id or (BEGINS if info.journaled else "")
            for address, info in self._present().items()
            if (info.index_id, info.shard) == (index, shard)
        }
        used = view.replicas.get(shard, ())
        return target(shard, used, logs, tried, self._worked.get(shard, ""))

    def writer(self, address: str, shard: int) -> ShardWriter:
        """The writer to the shard of a node that `address` has just returned."""
        identity = self._view().identity
        assert identity is not None  # it has replicas
        key = (address, identity, shard)
        if key not in self._opened:
            self._opened[key] = self._open(*key)
        return self._opened[key].writer

    def worked(self, address: str, shard: int) -> None:
        """Notes that the node has stored writes of the shard: it gets the next ones, too."""
        self._worked[shard] = address

    async def tidy(self) -> None:
        """Closes connections to nodes that do not serve the index any more."""
        view = self._view()
        there = {(a, shard) for shard, own in view.replicas.items() for a in own}
        for key, opened in list(self._opened.items()):
            address, identity, shard = key
            gone = identity != view.identity or (address, shard) not in there
            if gone and not opened.busy() and key in self._opened:  # or another call closes it
                del self._opened[key]
                await opened.close()

    async def close(self) -> None:
        while self._opened:
            await self._opened.popitem()[1].close()
