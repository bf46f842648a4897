"""A served shard that other nodes may copy, follow and take over."""

from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.live.shard import LiveShard


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferSource:
    """A served shard, and the directory of its files."""

    shard: LiveShard
    directory: Path
    index_id: str
    takes_writes: bool
    """Whether the shard takes writes that other nodes would lack; false if it follows a journal."""
