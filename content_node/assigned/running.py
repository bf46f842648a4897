"""The interfaces by which a node that follows an assignment opens and closes shards.

Implementations are in `content_node.composing`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from winnow.content_node.served_shard import ServedShard
from winnow.content_node.served_shards import ServedShards


class OpenedShard(Protocol):
    """A shard that this process opened. Methods raise a WinnowError if it is not served."""

    @property
    def directory(self) -> Path:
        """The directory of the shard."""

    @property
    def served(self) -> ServedShard:
        """The shard, as callers see it."""

    @property
    def must_be_replaced(self) -> bool:
        """Whether this copy is permanently out of date: another node is the owner of the shard."""

    @property
    def can_split(self) -> bool:
        """Whether this copy, or a half of it, takes the writes of the shard."""

    @property
    def is_unfinished_half(self) -> bool:
        """Whether this is a half whose writes its parent still takes."""

    async def prepare_close(self) -> bool:
        """Returns whether the node may close the shard, once other nodes serve it.

        If so, a copy does not become the owner until `cancel_close`.
        """

    def cancel_close(self) -> None:
        """Keeps a shard open, although `prepare_close` returned True."""

    async def make_half(self, half: int, directory: Path) -> None:
        """Writes a half of this shard to a new directory."""


Shard = TypeVar("Shard", bound=OpenedShard)


class ShardHost(Protocol[Shard]):
    """Opens, serves and closes the shards of this process."""

    @property
    def served(self) -> ServedShards:
        """The shards, as callers see them."""

    @property
    def all(self) -> Sequence[Shard]:
        """All shards, loaded or not."""

    def set_index(self, index_id: str) -> None:
        """Sets the id of the index that all shards added from now on must belong to."""

    def add(
        self,
        directory: Path,
        pull: str = "",
        max_unmerged: int | None = None,
        *,
        hidden: bool = False,
    ) -> Shard:
        """Adds a shard without loading it: calls for it fail until `load_added`."""

    async def load_added(self, shard: Shard) -> None:
        """Loads a shard that was added. Raises a WinnowError if it cannot be loaded."""

    async def remove(self, shard: Shard) -> None:
        """Removes a shard: stores its waiting writes, and releases its directory."""

    def leave(self) -> None:
        """Reports to callers that the node is leaving."""

    async def close(self) -> None:
        """Stores waiting writes, and releases the directories."""
