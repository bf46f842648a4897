"""How fast all content nodes together read.

Knows the pace that each node reports; does not know how busy they are.
"""

import math
from collections.abc import Iterable, Sequence


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
