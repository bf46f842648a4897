"""The state of a cluster as one front node sees it, for operators."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from winnow.domain.prediction import EncoderGroupInfo


class NodeState(Enum):
    """Whether a content node gets calls, and why not."""

    SERVING = "serving"
    OUT = "out"
    """The node failed or was slow, and gets no calls for a while."""
    LEAVING = "leaving"
    """The node is shutting down."""
    UNREACHABLE = "unreachable"
    NOT_LOADED = "not_loaded"
    """The node runs, but could not load its shard."""
    LOADING = "loading"
    """The node runs, and loads its shard or tries again to load it."""
    REFUSED = "refused"
    """The node serves another index, other models or other passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The state of a content node at the last poll that it answered."""

    address: str
    state: NodeState
    reason: str = ""
    """Why the node is not serving; empty if it is."""
    calls_in_hand: int = 0
    """Number of running calls from this front node."""
    reads_in_hand: int = 0
    """Number of passages that wait to be read or are being read, for all front nodes."""
    seconds_per_read: float = 0.0
    sequence: int = 0
    """Sequence number of the last write that the node has."""
    lag: int = 0
    """Number of writes that this replica lacks and another one has."""
    passages: int = 0
    generation: str = ""
    writable: bool = False
    heard_seconds: float | None = None
    """Seconds since the last poll that the node answered; None if it has answered none."""
    node: str = ""
    """Name of the node; empty unless it follows an assignment of shards."""
    node_address: str = ""
    """Address at which other nodes reach the node; empty unless it follows an assignment."""
    journaled: bool = False
    """Whether the node takes writes from a journal."""


@dataclass(frozen=True, slots=True)
class ShardState:
    """A shard of the index."""

    shard: int
    passages: int
    sequence: int
    """Sequence number of the last known write."""
    replicas: Sequence[ReplicaState]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The shards of the served index, and the nodes that belong to no shard."""

    index_id: str = ""
    shards: Sequence[ShardState] = ()
    strangers: Sequence[ReplicaState] = ()
    """Nodes that belong to no shard of the index."""
    built_shards: int = 0
    """Number of shards that the index was built with; 0 if no index is served yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontState:
    """The state of a front node."""

    version: str
    bundle_name: str
    bundle_fingerprint: str
    up_seconds: float
    answers: bool | None = None
    """Whether questions are answered now; None for a front node without an index."""
    feeds: bool = False
    questions_answered: int = 0
    questions_refused: int = 0
    questions_in_hand: int = 0
    reads_in_hand: int = 0
    texts_in_hand: int = 0
    passages_in_hand: int = 0
    seconds_per_read: float = 0.0
    windows_in_hand: int | None = None
    """Windows of callers' texts that wait or are being read; None if it reads no texts."""


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """The state of a cluster and of the front node that reports it."""

    front: FrontState
    cluster: ClusterState
    groups: Sequence[EncoderGroupInfo] = ()
