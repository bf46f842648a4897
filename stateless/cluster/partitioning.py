"""Chooses between a shard that was split and its halves. Pure.

For a while both are there. Questions use either the shard or both halves, never one of each.
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
    """The shards that questions use.

    Halves are used once all of them are present. A front never goes back from them to their shard:
    it lacks their writes.

    Args:
        built: number of shards that the index was built with.
        present: numbers of the shards that nodes serve.
        handed_over: shards whose replicas have all handed over their writes.
        served: the last choice for this index; None without one.

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
    """The partition with these shards. Cached: a front needs the same one repeatedly."""
    return Partition(built, shards)
