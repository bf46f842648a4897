"""The pace of content nodes, and the limit of speculative reads.

This module knows the pace and the idle readers that nodes report. It knows no passages. A
speculative read may be unneeded, so it is sent only to a shard with an idle reader.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpeculationLimit:
    """Limits how many passages of one question are read before they are known to be needed."""

    idle: Mapping[int, int]
    """Number of idle readers that each shard reported when it retrieved."""
    max_concurrent: int
    """Maximum number of concurrent reads, unless the needed passages are more."""

    @property
    def concurrent_reads(self) -> int:
        """Maximum number of reads in flight if some are speculative; 0 if none can be."""
        concurrent = min(self.max_concurrent, sum(self.idle.values()))
        return concurrent if concurrent > 1 else 0

    def allows(self, shard: int, reads: Mapping[int, int], ahead: int, needed: int) -> bool:
        """Whether to read the next passage speculatively.

        A question may read ahead as many passages as it has needed so far, and at least
        `max_concurrent` - 1. The more passages it has needed, the more likely it needs more.

        Args:
            shard: shard of the passage.
            reads: number of passages of the question that are being read, by shard.
            ahead: number of passages whose read has started and that are not needed yet.
            needed: number of passages that are needed so far.

        """
        is_idle = reads.get(shard, 0) < self.idle.get(shard, 0)
        return (
            is_idle
            and sum(reads.values()) < self.max_concurrent
            and ahead < max(needed, self.max_concurrent - 1)
        )


def seconds_per_read(shards: Iterable[Sequence[float]]) -> float | None:
    """Seconds per passage of the whole index at full load; None if no node has reported a pace.

    Passages are spread evenly over the shards, so the slowest shard sets the pace.

    Args:
        shards: for each shard the seconds per read of its replicas, as `shard_pace` takes them.
            Shards without replicas are ignored.

    """
    serving = [replicas for replicas in shards if replicas]
    paces = [pace for replicas in serving if (pace := shard_pace(replicas)) is not None]
    return max(paces) / len(serving) if paces else None


def shard_pace(replicas: Sequence[float]) -> float | None:
    """Seconds per passage of a shard whose replicas share its passages; None if unknown.

    Args:
        replicas: seconds per read of each replica. A value that is not finite and positive is
            unknown: such a replica is taken to be as fast as the others.

    """
    rates = [1 / seconds for seconds in replicas if 0 < seconds < math.inf]
    if not rates:
        return None
    return len(rates) / (sum(rates) * len(replicas))
