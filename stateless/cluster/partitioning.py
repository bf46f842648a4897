"""Chooses between a split shard and its halves. Pure.

For a while nodes serve both. Questions use either the shard or its two halves, never a mixture.
"""

from collections.abc import Collection
from functools import lru_cache

from winnow.domain.partition import Partition, ancestors_of, halves_of


def choose_partition(
    built: int,
    present: Collection[int],
    handed_over: Collection[int] = (),
    served: Partition | None = None,
) -> Partition:
    """Chooses the shards that questions use.

    Halves are used once both halves of a shard are present. A front never returns from the halves
    to their shard, because the shard lacks the writes of the halves.

    Args:
        built: number of shards that the index was built with.
        present: numbers of the shards that nodes serve.
        handed_over: shards whose replicas have all handed over their writes to the halves.
        served: the last choice for this index; None if there is none.

    """
    before = served.shards if served is not None else ()
    numbers = {*present, *before}
    if max(numbers, default=0) < built:
        return partition_of(built, tuple(range(built)))
    split = {each for shard in numbers for each in ancestors_of(shard, built)}
    split_before = {each for shard in before for each in ancestors_of(shard, built)}
    stale = set(handed_over) if served is None else set()
    usable = set(present) - stale

    def choose(shard: int) -> list[int]:
        if shard not in split:
            return [shard]
        parts = [part for half in halves_of(shard, built) for part in choose(half)]
        if shard in split_before or usable.issuperset(parts):
            return parts
        return [shard] if shard in usable or usable.isdisjoint(parts) else parts

    return Partition(built, [part for root in range(built) for part in choose(root)])


@lru_cache(maxsize=8)
def partition_of(built: int, shards: tuple[int, ...]) -> Partition:
    """Returns the partition with these shards. It is cached, because a front needs it often."""
    return Partition(built, shards)
