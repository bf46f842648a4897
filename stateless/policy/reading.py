"""The pace of content nodes, and the number of passages to read concurrently.

Knows the pace and the idle readers that each node reports; knows no passages. A speculative read
may be unneeded, so it is sent only to a shard with an idle reader.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence


def first_reads(
    shards: Sequence[int], idle: Mapping[int, int], needed: int, max_concurrent: int
) -> int:
    """How many of the ranked passages to send at first: needed and speculative reads.

    Args:
        shards: shard of each passage, in the order of reading.
        idle: number of idle readers at retrieval, by shard.
        needed: number of passages that must be read in any case.
        max_concurrent: limit of concurrent reads, unless more are needed.

    """
    reads: Counter[int] = Counter()
    for index, shard in enumerate(shards):
        reads[shard] += 1
        if index >= needed and (index >= max_concurrent or reads[shard] > idle.get(shard, 0)):
            return index
    return len(shards)


def seconds_per_read(shards: Iterable[Sequence[float]]) -> float | None:
    """Seconds per passage while every shard is busy; None if no node has reported a pace.

    Passages are spread evenly over the shards, so the slowest shard sets the pace. Its replicas
    share its passages. A replica that has not read anything yet counts like the others.

    Args:
        shards: seconds per read of each replica, by shard; 0 if unknown. Values that are not
            finite count as unknown. Shards without replicas are ignored.

    """
    serving = [replicas for replicas in shards if replicas]
    paces = [pace for replicas in serving if (pace := _shard_pace(replicas)) is not None]
    return max(paces) / len(serving) if paces else None


def _shard_pace(replicas: Sequence[float]) -> float | None:
    rates = [1 / seconds for seconds in replicas if 0 < seconds < math.inf]
    if not rates:
        return None
    return len(rates) / (sum(rates) * len(replicas))
