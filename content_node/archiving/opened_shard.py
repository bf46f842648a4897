"""A shard that is open in this process."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from winnow.content_node.live.copied_writer import TakesCopies
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.local_shard import LocalShard
from winnow.domain.shard import ShardInfo
from winnow.shard_writer import CountingShardWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedShard:
    """The parts of an open shard that its callers use."""

    live: LiveShard
    searcher: LocalShard
    writer: CountingShardWriter
    copied: TakesCopies
    """Takes the writes of a run of copying."""
    catch_up: Callable[[], Awaitable[None]]
    """Returns once the shard has the present entries of its journal, or cannot get them soon."""
    info: ShardInfo
    """The description of the shard when it was opened."""
