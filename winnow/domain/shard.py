"""A shard: which part of the index it is, where it lies, and what it reports of itself.

Front nodes, content nodes and tools must agree on the layout, so it is defined here once. Pure.
"""

import hashlib
from dataclasses import dataclass, field

MOST_FIELDS = 1_000
"""Most names of fields that a shard reports; with this number there may be more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardInfo:
    """The description of a shard: its part of the index, its encoding, its load."""

    shard: int
    shards: int
    index_id: str
    passages: int
    dimension: int
    bundle_name: str
    bundle_fingerprint: str
    generation: str = ""
    """Names the rows and how they are found: replicas with equal generations hold the same passages
    in the same rows, and give the same answers. Empty if not known.
    """
    index_passages: int = 0
    """Passages of all shards together, when the index was built; 0 if not known."""
    sequence: int = 0
    """The last write that is served; 0 if there was none."""
    log_id: str = ""
    """Names the log of writes that the shard follows; empty if it takes none."""
    fields: tuple[str, ...] = field(default=(), compare=False)
    """Names of the metadata's fields, in order; at most `MOST_FIELDS`."""
    seconds_per_read: float = field(default=0.0, compare=False)
    """Seconds per passage while reading, all threads together; 0 if not known yet.

    The load does not make it another shard, so it does not count in comparisons.
    """
    reads_in_hand: int = field(default=0, compare=False)
    """Passages that wait to be read or are being read."""
    journaled: bool = field(default=False, compare=False)
    """Whether the node follows a journal; `log_id` is empty until it has begun to."""

    @property
    def rows(self) -> tuple[str, int, str, str, str]:
        """The identity of its passages and its models: replicas with the same one are
        interchangeable.

        Replicas of one log merge at different times, so their generations differ. At the same write
        they hold the same passages.
        """
        held = "" if self.log_id else self.generation
        return self.index_id, self.shard, self.log_id, held, self.bundle_fingerprint


INDEX_FILE = "index.json"
"""The manifest of an index, in its directory."""
MOST_SHARDS = 4_096
"""Shards that an index may be cut into."""


def shard_of(passage_id: str, shards: int) -> int:
    """The shard that a passage belongs to: by its id alone, so that updates find it again."""
    digest = hashlib.blake2b(passage_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


def shard_name(shard: int, shards: int) -> str:
    """The directory of a shard within its index."""
    return f"shard-{shard:05d}-of-{shards:05d}"
