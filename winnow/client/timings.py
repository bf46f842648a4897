"""When a question was worked on, and where, as plain values. Milliseconds.

Starts count from when the front node began with the question.
"""

from dataclasses import dataclass

from winnow.domain.shard_call import CallKind, CallOutcome


@dataclass(frozen=True, slots=True)
class ShardTimings:
    """Milliseconds spent on one shard."""

    shard: int
    queue_ms: float
    retrieve_ms: float
    read_ms: float


@dataclass(frozen=True, slots=True)
class ReadTiming:
    """One passage that was read."""

    passage_id: str
    start_ms: float
    ms: float


@dataclass(frozen=True, slots=True)
class ShardCall:
    """A call of the front node to a shard, with its hedges and retries.

    Starts of the content node's work count the way to that node as nothing.
    """

    shard: int
    kind: CallKind | None
    """None if this client does not know it, and so is the outcome."""
    outcome: CallOutcome | None
    start_ms: float
    ms: float
    """Until its end; if it was abandoned, until the answers were merged."""
    retrieve_start_ms: float = 0.0
    retrieve_ms: float = 0.0
    """0 if it did not retrieve."""
    reads: tuple[ReadTiming, ...] = ()


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds spent in each stage, as the front node measured them."""

    queue_ms: float = 0.0
    tokenise_ms: float = 0.0
    encode_ms: float = 0.0
    retrieve_ms: float = 0.0
    read_ms: float = 0.0
    merge_ms: float = 0.0
    total_ms: float = 0.0
    shards: tuple[ShardTimings, ...] = ()
    retrieve_start_ms: float = 0.0
    """0 where shards retrieve and read in one round trip."""
    read_start_ms: float = 0.0
    merge_start_ms: float = 0.0
    calls: tuple[ShardCall, ...] = ()
    """To shards, in the order in which they were sent."""
