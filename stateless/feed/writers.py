"""The nodes that take writes: found by shard, reached when they are needed.

Knows the view of the index that questions have, too; does not know how a node is written to.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from stateless.cluster.membership import Identity, View
from stateless.feed.targets import target
from winnow.domain.shard import ShardInfo
from winnow.errors import UnavailableError
from winnow.shard_writer import ShardWriter


@dataclass(frozen=True, slots=True)
class Reached:
    """A node that takes writes."""

    writer: ShardWriter
    busy: Callable[[], bool]
    """Whether it has calls in hand."""
    close: Callable[[], Awaitable[None]]


Open = Callable[[str, Identity, int], Reached]
"""Given an address, the index, and the number of a shard."""
_Key = tuple[str, Identity, int]


class Writers:
    """Writers of the shards of the index that is served."""

    def __init__(
        self,
        view: Callable[[], View],
        present: Callable[[], Mapping[str, ShardInfo]],
        open_: Open,
    ) -> None:
        """`view`: what is served now; `present`: what all nodes that are there said last, by
        address.
        """
        self._view, self._present, self._open = view, present, open_
        self._reached: dict[_Key, Reached] = {}

    @property
    def shards(self) -> int:
        """Shards of the index; raises UnavailableError if none has been found yet."""
        identity = self._view().identity
        if identity is None:
            raise UnavailableError("no shard of the index has been found yet: try again")
        return identity.shards

    def writer(self, shard: int, attempt: int = 0) -> ShardWriter:
        """Where the writes of a shard go; raises as `target` does."""
        view = self._view()
        index = view.identity.index_id if view.identity else ""
        logs = {
            address: info.log_id
            for address, info in self._present().items()
            if (info.index_id, info.shard) == (index, shard)
        }
        address = target(shard, view.replicas.get(shard, ()), logs, attempt)
        assert view.identity is not None  # it has replicas
        key = (address, view.identity, shard)
        if key not in self._reached:
            self._reached[key] = self._open(*key)
        return self._reached[key].writer

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
