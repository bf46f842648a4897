"""The writers of the shards of the served index, opened when they are first needed.

Uses the same cluster view as questions; does not know the protocol of a writer.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from winnow.domain.partition import Partition
from winnow.domain.shard import ShardInfo
from winnow.errors import UnavailableError
from winnow.shard_writer import ShardWriter
from winnow.stateless.cluster.membership import ClusterView, IndexIdentity
from winnow.stateless.cluster.node import ReplicaAt
from winnow.stateless.feed.targets import UNREAD_JOURNAL, choose_target


@dataclass(frozen=True, slots=True)
class OpenWriter:
    """A connection to a node that takes writes."""

    writer: ShardWriter
    busy: Callable[[], bool]
    """Returns whether calls are running."""
    close: Callable[[], Awaitable[None]]


Open = Callable[[str, IndexIdentity, int], OpenWriter]
"""Opens a writer: `open_(address, index, shard)`."""
_Key = tuple[str, IndexIdentity, int]


class Writers:
    """Writers of the shards of the index that is served."""

    def __init__(
        self,
        view: Callable[[], ClusterView],
        present: Callable[[], Mapping[ReplicaAt, ShardInfo]],
        open_: Open,
    ) -> None:
        """`view` returns the current cluster view, and `present` the last reports of the present
        replicas.
        """
        self._view, self._present, self._open = view, present, open_
        self._opened: dict[_Key, OpenWriter] = {}
        self._last_address: dict[int, str] = {}
        """Address that took the last writes, by shard."""

    @property
    def partition(self) -> Partition:
        """The shards of the index; raises UnavailableError if none has been found yet."""
        partition = self._view().partition
        if partition is None:
            raise UnavailableError("no shard of the index has been found yet: try again")
        return partition

    def address(self, shard: int, tried: Sequence[str] = ()) -> str:
        """The address of the node that takes the writes of a shard; see `choose_target`."""
        view = self._view()
        index = view.identity.index_id if view.identity else ""
        infos = {
            replica.address: info
            for replica, info in self._present().items()
            if (info.index_id, info.shard) == (index, shard)
        }
        return choose_target(
            shard,
            view.replicas.get(shard, ()),
            {
                address: info.log_id or (UNREAD_JOURNAL if info.journaled else "")
                for address, info in infos.items()
            },
            tried,
            self._last_address.get(shard, ""),
            moving=_not_owners(infos),
        )

    def writer(self, address: str, shard: int) -> ShardWriter:
        """The writer to the shard of a node that `address` has just returned."""
        identity = self._view().identity
        assert identity is not None  # it has replicas
        key = (address, identity, shard)
        if key not in self._opened:
            self._opened[key] = self._open(*key)
        return self._opened[key].writer

    def record_success(self, address: str, shard: int) -> None:
        """Records that the node has stored writes of the shard: it gets the next ones, too."""
        self._last_address[shard] = address

    async def close_unused(self) -> None:
        """Closes connections to nodes that no longer serve the index."""
        view = self._view()
        serving = {(a, shard) for shard, own in view.replicas.items() for a in own}
        for key, opened in list(self._opened.items()):
            address, identity, shard = key
            is_unused = identity != view.identity or (address, shard) not in serving
            # another call may have closed it while this one waited
            if is_unused and not opened.busy() and key in self._opened:
                del self._opened[key]
                await opened.close()

    async def close(self) -> None:
        while self._opened:
            await self._opened.popitem()[1].close()


def _not_owners(infos: Mapping[str, ShardInfo]) -> list[str]:
    """The addresses of copies of a shard whose writes another node takes.

    Nodes report at different moments, so both may claim to be the owner for a moment. Then the node
    that got the shard last is the owner.
    """
    moves = max((info.moves for info in infos.values() if not info.writes_elsewhere), default=0)
    return [
        address for address, info in infos.items() if info.writes_elsewhere or info.moves < moves
    ]
