"""The description of a shard, and the layout of an index: how passages map to shards. Pure.

Front nodes, content nodes and tools must agree on the layout, so it is defined once, here.
"""

import hashlib
from dataclasses import dataclass, field

from winnow.domain.tenant import prefix_of, tenant_of
from winnow.errors import WinnowError

MAX_FIELDS = 1_000
"""Maximum number of field names that a shard reports; further names are left out."""
EXACT_UP_TO = 2_000
"""Number of passages up to which exhaustive search is as fast as a graph search."""
DEFAULT_EF = 0
"""Search width of graphs that stands for a width that suits the shard."""
GRAPHLESS_UP_TO = 20_000
"""Number of passages up to which a shard may do without a graph, if no graph library is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardInfo:
    """The description of a shard: its passages, its models and its load."""

    shard: int
    """Number of the shard; `shards` or higher if the shard comes from a split."""
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
    """Number of passages in the whole index when it was built; 0 if not known."""
    sequence: int = 0
    """Sequence number of the last write that is served; 0 without writes."""
    log_id: str = ""
    """Identifies the log of writes that the shard follows; empty if it takes no writes."""
    fields: tuple[str, ...] = field(default=(), compare=False)
    """Sorted names of the metadata fields; at most `MAX_FIELDS`."""
    seconds_per_read: float = field(default=0.0, compare=False)
    """Seconds per passage that all reader threads together need; 0 if not known yet.

    The value depends on the load, so comparisons ignore it.
    """
    reads_in_hand: int = field(default=0, compare=False)
    """Number of passages that wait to be read or are being read."""
    journaled: bool = field(default=False, compare=False)
    """Whether the node follows a journal; `log_id` is empty until it has started."""
    writes_elsewhere: bool = field(default=False, compare=False)
    """Whether another node takes the shard's writes, because the shard is being moved."""
    moves: int = field(default=0, compare=False)
    """Number of times that the shard was handed over to another node.

    If two nodes report that they take the shard's writes, the report with fewer moves is outdated:
    its node has since handed the shard over.
    """

    closed_since: int = field(default=0, compare=False)
    """Version of the catalog since which the shard takes no writes of front nodes; 0 if it does.

    Writes up to `sequence` were taken before.
    """
    replica_closed_since: int = field(default=0, compare=False)
    """Like `closed_since`, for a replica of a shard that follows a journal.

    This replica has applied all writes that it took. Once all replicas report it, the largest of
    their `sequence` counts all writes. Older versions close no replicas, and report 0.
    """
    token_vectors: str = ""
    """Fingerprint of the token vectors of the passages; empty if the shard has none.

    The passages of a shard can be ranked by late interaction if this is the bundle's fingerprint.
    """
    fronts: int = 0
    """Number of front nodes between the caller and the content node of the shard."""
    tenants: bool = False
    """Whether the index has tenants. Then every call for its passages must name one."""

    @property
    def replica_identity(self) -> tuple[str, int, str, str, str]:
        """Identity of the passages and the models; replicas with equal ones give equal answers.

        The generation is left out if the shard follows a log. Replicas of one log have the same
        passages after the same write. But they merge at different times, so their generations
        differ.
        """
        generation = "" if self.log_id else self.generation
        return self.index_id, self.shard, self.log_id, generation, self.bundle_fingerprint


@dataclass(frozen=True, slots=True)
class ShardFault:
    """Why a content node does not serve a shard that it should serve."""

    shard: int | None
    """Number of the shard; None if it is unknown, because its files cannot be read."""
    error: WinnowError
    """The error of calls to the shard: UnavailableError while it loads, else NotLoadedError."""
    is_unreachable: bool = False
    """Whether the shard's nodes do not reply to the front node that reports the fault."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """The shards of a content node."""

    infos: tuple[ShardInfo, ...] = ()
    """The served shards. Each reports the load of the whole node."""
    faults: tuple[ShardFault, ...] = ()
    """The shards that the node should serve, but does not."""
    node: str = ""
    """Name of the node; empty unless it follows an assignment."""
    address: str = ""
    """Address at which other nodes reach the node; empty unless it follows an assignment."""


INDEX_FILE = "index.json"
"""File name of the manifest of an index."""
MAX_FRONTS = 8
"""Maximum number of front nodes between a caller and a content node; more indicate a cycle."""
MAX_SHARDS = 4_096
"""Maximum number of shards of an index."""
PASSAGES_PER_SHARD = 50_000
"""Maximum average number of passages per shard if a build chooses the number of shards."""


def suitable_shards(passages: int, per_shard: int = PASSAGES_PER_SHARD) -> int:
    """The smallest number of shards with at most `per_shard` passages on average; at most
    `MAX_SHARDS`.
    """
    return min(max(1, -(-passages // per_shard)), MAX_SHARDS)


def passage_hash(passage_id: str) -> int:
    """The hash that decides the shard of a passage.

    The hash depends only on the id, so updates of a passage go to the same shard.
    """
    return int.from_bytes(hashlib.blake2b(passage_id.encode(), digest_size=8).digest(), "big")


def place_of(passage_id: str, shards: int) -> tuple[int, int]:
    """The place of a passage: its shard in an index of `shards` shards, and the bits by which
    splits divide this shard.

    All passages of a tenant have the same shard. Splits divide them evenly, too.
    """
    rest, shard = divmod(passage_hash(passage_id), shards)
    if tenant := tenant_of(passage_id):
        shard = shard_of_tenant(tenant, shards)
    return shard, rest


def shard_of_tenant(tenant: str, shards: int) -> int:
    """The shard of all passages of a tenant when an index is built."""
    return passage_hash(prefix_of(tenant)) % shards


def shard_of(passage_id: str, shards: int) -> int:
    """The shard of a passage when an index is built; `winnow.domain.partition` covers splits."""
    return place_of(passage_id, shards)[0]


def shard_name(shard: int, shards: int) -> str:
    """Name of the directory of a shard within its index."""
    return f"shard-{shard:05d}-of-{shards:05d}"


def shard_number_of(name: str) -> int | None:
    """The inverse of `shard_name`: the shard's number; None for other names."""
    digits = name.removeprefix("shard-").partition("-of-")[::2]
    if not all(each.isascii() and each.isdecimal() for each in digits):
        return None
    shard, shards = map(int, digits)
    return shard if shard_name(shard, shards) == name else None
