"""The nodes that take writes: found by shard, reached when they are needed.

Knows the view of the index that questions have, too; does not know how a node is written to.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from winnow.domain.shard import ShardInfo
from winnow.errors import UnavailableError
from winnow.shard_writer import ShardWriter
from winnow.stateless.cluster.membership import ClusterView, IndexIdentity
from winnow.stateless.feed.targets import BEGINS, target


@dataclass(frozen=True, slots=True)
class Reached:
    """A node that takes writes."""

    writer: ShardWriter
    busy: Callable[[], bool]
    """Whether it has calls in hand."""
    close: Callable[[], Awaitable[None]]


Open = Callable[[str, IndexIdentity, int], Reached]
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
        """`view`: what is served now; `present`: what all nodes that are there said last, by
        address.
        """
        self._view, self._present, self._open = view, present, open_
        self._reached: dict[_Key, Reached] = {}
        self._worked: dict[int, str] = {}

    @property
    def shards(self) -> int:
        """Shards of the index; raises UnavailableError if none has been found yet."""
        identity = self._view().identity
        if identity is None:
            raise UnavailableError("no shard of the index has been found yet: try again")
        return identity.shards

    def address(self, shard: int, tried: Sequence[str] = ()) -> str:
        """The node that the writes of a shard go to: the one that took the last ones, unless it was
        tried; raises as `target` does.
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
        """What writes to the shard of a node that `address` has just named."""
        identity = self._view().identity
        assert identity is not None  # it has replicas
        key = (address, identity, shard)
        if key not in self._reached:
            self._reached[key] = self._open(*key)
        return self._reached[key].writer

    def worked(self, address: str, shard: int) -> None:
        """The node has stored writes of the shard: it gets the next ones, too."""
        self._worked[shard] = address

    async def tidy(self) -> None:
        """Closes what leads to nodes that serve nothing here any more."""
        view = self._view()
        there = {(a, shard) for shard, own in view.replicas.items() for a in own}
        for key, reached in list(self._reached.items()):
            address, identity, shard = key
            gone = identity != view.identity or (address, shard) not in there
            if gone and not reached.busy() and key in self._reached:  # or another call closes it
                del self._reached[key]
                await reached.close()

    async def close(self) -> None:
        """Closes everything."""
        while self._reached:
            await self._reached.popitem()[1].close()
