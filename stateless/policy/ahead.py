"""Which passages are read at once: those that are needed, and further ones whose readers are idle.

Knows which shard holds which passage and how many readers were idle there a moment ago; does not
know what is read or when enough was. Reading ahead is work that may turn out to be needless, so a
passage goes along only where a reader should be free for it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence


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
