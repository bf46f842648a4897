"""Opens the writers of the shards of the served index when they are first needed.

This module uses the same cluster view as questions. It does not know the protocol of a writer.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from winnow.domain.partition import Partition
from winnow.domain.shard import ShardInfo
from winnow.errors import NotLoadedError, UnavailableError
from winnow.shard_writer import ShardWriter
from winnow.stateless.cluster.membership import ClusterView, IndexIdentity
from winnow.stateless.cluster.node import ReplicaAt
from winnow.stateless.feed.targets import UNREAD_JOURNAL, choose_target


@dataclass(frozen=True, slots=True)
class OpenWriter:
    """A writer of one shard, and the connection to its node."""

    writer: ShardWriter
    busy: Callable[[], bool]
    """Returns whether calls are running."""
    close: Callable[[], Awaitable[None]]
    """Closes the connection."""


WriterOpener = Callable[[str, IndexIdentity, int], OpenWriter]
"""Opens a writer: `open_writer(address, index, shard)`."""
_Key = tuple[str, IndexIdentity, int]


class Writers:
    """The writers of the shards of the served index."""

    def __init__(
        self,
        view: Callable[[], ClusterView],
        present: Callable[[], Mapping[ReplicaAt, ShardInfo]],
        open_writer: WriterOpener,
        not_loaded: Callable[[int], NotLoadedError | None] = lambda _: None,
    ) -> None:
        """Opens no writer yet.

        Args:
            view: returns the current cluster view.
            present: returns the last report of each replica that replies.
            open_writer: opens the writer of a shard on a node.
            not_loaded: returns the error of a shard that no node can load; None for others.

        """
        self._view, self._present, self._open_writer = view, present, open_writer
        self._not_loaded = not_loaded
        self._opened: dict[_Key, OpenWriter] = {}
        self._last_address: dict[int, str] = {}
        """The address that took the last writes of each shard."""
        self._is_closed = False

    @property
    def partition(self) -> Partition:
        """The split of the index into shards; raises UnavailableError before a shard was found."""
        partition = self._view().partition
        if partition is None:
            raise UnavailableError("no shard of the index has been found yet: try again")
        return partition

    def address(self, shard: int, tried: Sequence[str] = ()) -> str:
        """Returns the address of the node that takes the writes of a shard.

        Raises NotLoadedError if no node can load the shard, and the errors of `choose_target`.
        """
        if (error := self._not_loaded(shard)) is not None:
            raise error
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
            moving=_non_owners(infos),
        )

    def writer(self, address: str, shard: int) -> ShardWriter:
        """Returns the writer of a shard on the node whose address `address` has just returned.

        Raises UnavailableError once this was closed: nobody would close another connection.
        """
        if self._is_closed:
            raise UnavailableError("the index is not open any more")
        identity = self._view().identity
        assert identity is not None  # an index without an identity has no replicas
        key = (address, identity, shard)
        if key not in self._opened:
            self._opened[key] = self._open_writer(*key)
        return self._opened[key].writer

    def record_success(self, address: str, shard: int) -> None:
        """Records that a node has stored writes of a shard: it gets the next writes, too."""
        self._last_address[shard] = address

    async def close_unused(self) -> None:
        """Closes connections to nodes that no longer serve the index."""
        view = self._view()
        serving = {(a, shard) for shard, own in view.replicas.items() for a in own}
        for key, opened in list(self._opened.items()):
            address, identity, shard = key
            is_unused = identity != view.identity or (address, shard) not in serving
            # another call may have closed this connection during an `await` here
            if is_unused and not opened.busy() and key in self._opened:
                del self._opened[key]
                await opened.close()

    async def close(self) -> None:
        """Closes all connections; opens none any more."""
        self._is_closed = True
        while self._opened:
            await self._opened.popitem()[1].close()


def _non_owners(infos: Mapping[str, ShardInfo]) -> list[str]:
    """Returns the addresses of nodes with a copy of a moving shard that do not take its writes.

    Nodes report at different moments, so two nodes may seem to take the writes. Then the node that
    got the shard last takes them.
    """
    moves = max((info.moves for info in infos.values() if not info.writes_elsewhere), default=0)
    return [
        address for address, info in infos.items() if info.writes_elsewhere or info.moves < moves
    ]
