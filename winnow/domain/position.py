"""A place in the log of writes of a shard."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A shard, and the number of one of its writes."""

    shard: int
    sequence: int
    """From 1; 0 before the first write."""
