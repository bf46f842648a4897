"""How fast content nodes read, and which passages are worth reading at once.

Knows the pace and the idle readers that each node reports; does not know what is read, nor when
enough was. A speculative read may turn out to be needless, so it is sent only where a reader
should be free for it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence


def at_once(shards: Sequence[int], idle: Mapping[int, int], needed: int, most: int) -> int:
    """How many of the passages to read now.

    Args:
        shards: of the passages, in the order of reading.
        idle: readers that were free when the shard retrieved, by shard.
        needed: passages that must be read in any case.
        most: passages read at once, unless more are needed.

    """
    taken: Counter[int] = Counter()
    for place, shard in enumerate(shards):
        taken[shard] += 1
        if place >= needed and (place >= most or taken[shard] > idle.get(shard, 0)):
            return place
    return len(shards)


def seconds_per_read(shards: Iterable[Sequence[float]]) -> float | None:
    """Seconds per passage while every shard is busy; None if no node has reported a pace.

    Passages are spread evenly over the shards, so the slowest shard sets the pace. Its replicas
    share its part; a replica that has not read anything yet counts like the others.

    Args:
        shards: seconds per read of each replica, 0 where it is not known yet, as is what is no
            finite number; shards without replicas read nothing, and need not be listed.

    """
    serving = [replicas for replicas in shards if replicas]
    paces = [pace for replicas in serving if (pace := _together(replicas)) is not None]
    return max(paces) / len(serving) if paces else None


def _together(replicas: Sequence[float]) -> float | None:
    rates = [1 / seconds for seconds in replicas if 0 < seconds < math.inf]
    if not rates:
        return None
    return len(rates) / (sum(rates) * len(replicas))
