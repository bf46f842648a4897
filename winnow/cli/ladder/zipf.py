"""Texts whose frequencies follow Zipf's law: the n-th most frequent one in proportion to 1 / n.

Pure. The size of a cache for a share of hits is Che's approximation (Che, Tung and Wang 2002): a
text is in an LRU cache if it came within a characteristic time.
"""

from collections import OrderedDict
from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

DISTINCT = 100_000
"""Number of distinct texts."""
HITS = 0.4
"""The share that Roblox reports for each of its processes."""
_DRAWS_PER_ENTRY = 20
"""Texts to draw for each entry of a cache, until the cache is in a steady state."""


def shares(distinct: int = DISTINCT) -> NDArray[np.float64]:
    """The share of each text, the most frequent first; the shares add up to one."""
    weights = 1.0 / np.arange(1, distinct + 1)
    shared: NDArray[np.float64] = weights / weights.sum()
    return shared


def entries_for(hits: float, each: NDArray[np.float64]) -> int:
    """The entries that a cache needs for a share `hits` of hits, with the texts' shares `each`."""
    low, high = 0.0, float(len(each)) ** 2
    for _ in range(100):
        time = (low + high) / 2
        found = float((each * -np.expm1(-each * time)).sum())
        low, high = (time, high) if found < hits else (low, time)
    return max(round(float(-np.expm1(-each * high).sum())), 1)


def drawn(number: int, each: NDArray[np.float64], chance: Random) -> list[int]:
    """Draws `number` texts by their shares; returns their places."""
    uniform = [chance.random() for _ in range(number)]
    places = np.searchsorted(each.cumsum(), uniform)
    return [min(int(place), len(each) - 1) for place in places]


def cached_texts(entries: int, each: NDArray[np.float64], chance: Random) -> Sequence[int]:
    """The texts in an LRU cache in its steady state, in order of eviction."""
    cached = OrderedDict[int, None]()
    for place in drawn(entries * _DRAWS_PER_ENTRY, each, chance):
        cached[place] = None
        cached.move_to_end(place)
        if len(cached) > entries:
            cached.popitem(last=False)
    return list(cached)
