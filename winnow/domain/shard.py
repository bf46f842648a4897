"""The description of a shard, and the layout of an index: how passages map to shards. Pure.

Front nodes, content nodes and tools must agree on the layout, so it is defined once, here.
"""

import hashlib
from dataclasses import dataclass, field

from winnow.errors import WinnowError

MAX_FIELDS = 1_000
"""Maximum number of field names that a shard reports; at this number, further ones may be left out.
"""
EXACT_UP_TO = 2_000
"""Up to this number of passages, exhaustive search is as fast as a graph search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardInfo:
    """The description of a shard: its part of the index, its encoding, its load."""

    shard: int
    """Number of the shard; at least `shards` for a part of a shard that was split."""
    shards: int
    """Number of shards that the index was built with; see `winnow.domain.partition`."""
    index_id: str
    passages: int
    dimension: int
    bundle_name: str
    bundle_fingerprint: str
    generation: str = ""
    """Identifies the rows and their indexes.

    Replicas with equal generations hold the same passages in the same rows, and return the same
    answers. Empty if not known.
    """
    index_passages: int = 0
    """Number of passages of all shards when the index was built; 0 if not known."""
    sequence: int = 0
    """Number of the last write that is served; 0 without writes."""
    log_id: str = ""
    """Identifies the log of writes that the shard follows; empty if it takes no writes."""
    fields: tuple[str, ...] = field(default=(), compare=False)
    """Sorted names of the metadata fields; at most `MAX_FIELDS`."""
    seconds_per_read: float = field(default=0.0, compare=False)
    """Seconds per passage while reading, over all threads; 0 if not known yet.

    It depends on the load, so comparisons ignore it.
    """
    reads_in_hand: int = field(default=0, compare=False)
    """Number of passages that wait to be read or are being read."""
    journaled: bool = field(default=False, compare=False)
    """Whether the node follows a journal; `log_id` is empty until it has started."""
    writes_elsewhere: bool = field(default=False, compare=False)
    """Whether another node takes the writes of the shard, because it is being moved."""
    moves: int = field(default=0, compare=False)
    """Number of times that the shard was handed over to another node.

    If two nodes report that they take its writes, the report with fewer moves is outdated: that
    node has handed the shard over since.
    """

    fronts: int = 0
    """Number of front nodes between the caller and the content node of the shard."""

    @property
    def rows(self) -> tuple[str, int, str, str, str]:
        """The identity of the passages and models: replicas with equal identities are
        interchangeable.

        Replicas of one log merge at different times, so their generations differ. At the same write
        they hold the same passages.
        """
        generation = "" if self.log_id else self.generation
        return self.index_id, self.shard, self.log_id, generation, self.bundle_fingerprint


@dataclass(frozen=True, slots=True)
class ShardFault:
    """Why a content node does not serve a shard that it should serve."""

    shard: int | None
    """Number of the shard; None if it is unknown, because its files cannot be read."""
    error: WinnowError
    """The error of calls: a NotLoadedError, or an UnavailableError while the shard is loading."""
    is_unreachable: bool = False
    """Whether the nodes of the shard do not reply to the front that reports the fault."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """The shards of a content node."""

    infos: tuple[ShardInfo, ...] = ()
    """The served shards; all share the load of the node."""
    faults: tuple[ShardFault, ...] = ()
    """The other shards that the node should serve."""
    node: str = ""
    """Name of the node; empty unless it follows an assignment."""
    address: str = ""
    """Address at which other nodes reach the node; empty unless it follows an assignment."""


INDEX_FILE = "index.json"
"""File name of the manifest of an index."""
MAX_FRONTS = 8
"""Maximum number of front nodes between a caller and a content node. More of them form a cycle."""
MAX_SHARDS = 4_096
"""Maximum number of shards of an index."""
PASSAGES_PER_SHARD = 50_000
"""Maximum number of passages of a shard, on average, if a build chooses the number of shards."""


def suitable_shards(passages: int, per_shard: int = PASSAGES_PER_SHARD) -> int:
    """The number of shards for an index of `passages`: the fewest of at most `per_shard` passages
    on average, and at most `MAX_SHARDS`.
    """
    return min(max(1, -(-passages // per_shard)), MAX_SHARDS)


def passage_hash(passage_id: str) -> int:
    """The hash of a passage that decides its shard.

    It depends only on the id, so that updates go to the same shard.
    """
    return int.from_bytes(hashlib.blake2b(passage_id.encode(), digest_size=8).digest(), "big")


def shard_of(passage_id: str, shards: int) -> int:
    """The shard of a passage when an index is built; see `winnow.domain.partition` for later."""
    return passage_hash(passage_id) % shards


def shard_name(shard: int, shards: int) -> str:
    """Name of the directory of a shard within its index."""
    return f"shard-{shard:05d}-of-{shards:05d}"


def number_of(name: str) -> int | None:
    """Number of the shard whose directory has this name; None for other names."""
    digits = name.removeprefix("shard-").partition("-of-")[::2]
    if not all(each.isascii() and each.isdecimal() for each in digits):
        return None
    shard, shards = map(int, digits)
    return shard if shard_name(shard, shards) == name else None
