"""The pace of content nodes, and the number of passages to read speculatively.

Knows the pace and the idle readers that each node reports; knows no passages. A speculative read
may be unneeded, so it is sent only to a shard with an idle reader.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpeculationLimit:
    """How many passages of one question may be read before they are known to be needed."""

    idle: Mapping[int, int]
    """Number of idle readers at retrieval, by shard."""
    max_concurrent: int
    """Limit of concurrent reads, unless more are needed."""

    @property
    def concurrent_reads(self) -> int:
        """Number of reads in flight with speculative ones; 0 if none can be allowed."""
        concurrent = min(self.max_concurrent, sum(self.idle.values()))
        return concurrent if concurrent > 1 else 0

    def allows(self, shard: int, reads: Mapping[int, int], ahead: int, needed: int) -> bool:
        """Whether to read the next passage speculatively.

        The more passages a question needed so far, the more likely it needs further ones. So it may
        read as many ahead as it needed, and always as many as fill `max_concurrent` at first.

        Args:
            shard: shard of the passage.
            reads: number of passages of the question that are being read, by shard.
            ahead: number of passages that were begun and are not needed yet.
            needed: number of passages that are needed so far.

        """
        is_idle = reads.get(shard, 0) < self.idle.get(shard, 0)
        return (
            is_idle
            and sum(reads.values()) < self.max_concurrent
            and ahead < max(needed, self.max_concurrent - 1)
        )


def seconds_per_read(shards: Iterable[Sequence[float]]) -> float | None:
    """Seconds per passage while every shard is busy; None if no node has reported a pace.

    Passages are spread evenly over the shards, so the slowest shard sets the pace. Its replicas
    share its passages. A replica that has not read anything yet counts like the others.

    Args:
        shards: seconds per read of each replica, by shard, as for `shard_pace`. Shards without
            replicas are ignored.

    """
    serving = [replicas for replicas in shards if replicas]
    paces = [pace for replicas in serving if (pace := shard_pace(replicas)) is not None]
    return max(paces) / len(serving) if paces else None


def shard_pace(replicas: Sequence[float]) -> float | None:
    """Seconds per passage of a shard whose replicas share its passages; None if unknown.

    Args:
        replicas: seconds per read of each replica; values that are not finite and positive count
            as unknown.

    """
    rates = [1 / seconds for seconds in replicas if 0 < seconds < math.inf]
    if not rates:
        return None
    return len(rates) / (sum(rates) * len(replicas))
