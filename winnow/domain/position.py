"""Places in the logs of writes of shards."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A shard, and the number of one of its writes."""

    shard: int
    sequence: int
    """From 1; 0 before the first write."""


def same_log(one: str, other: str) -> bool:
    """Whether two names may be of one log. An empty name may be of any: a shard that was never
    written to has no log, and a node of an earlier version does not name it.
    """
    return not one or not other or one == other
