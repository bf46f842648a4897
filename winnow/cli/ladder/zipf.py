"""Draws texts by Zipf's law: the n-th most frequent text has a share proportional to 1 / n. Pure.

The cache size for a given hit rate follows Che's approximation (Che, Tung and Wang 2002): a text is
in an LRU cache if it was requested within a characteristic time.
"""

from collections import OrderedDict
from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

DISTINCT = 100_000
"""Default number of distinct texts."""
HIT_RATE = 0.4
"""Share of cache hits that Roblox reports for its processes."""
_DRAWS_PER_ENTRY = 20
"""Number of texts to draw per cache entry, so that the cache reaches a steady state."""


def shares(distinct: int = DISTINCT) -> NDArray[np.float64]:
    """The frequency of each text, the most frequent first. The sum is 1."""
    weights = 1.0 / np.arange(1, distinct + 1)
    shared: NDArray[np.float64] = weights / weights.sum()
    return shared


def entries_for(hit_share: float, frequencies: NDArray[np.float64]) -> int:
    """The number of cache entries for which `hit_share` of the requests are hits."""
    low, high = 0.0, float(len(frequencies)) ** 2
    for _ in range(100):
        time = (low + high) / 2
        hits = float((frequencies * -np.expm1(-frequencies * time)).sum())
        low, high = (time, high) if hits < hit_share else (low, time)
    return max(round(float(-np.expm1(-frequencies * high).sum())), 1)


def draw_texts(number: int, frequencies: NDArray[np.float64], rng: Random) -> list[int]:
    """Draws `number` texts by their frequencies; returns their ranks, from 0."""
    uniform = [rng.random() for _ in range(number)]
    ranks = np.searchsorted(frequencies.cumsum(), uniform)
    return [min(int(rank), len(frequencies) - 1) for rank in ranks]


def cached_texts(entries: int, frequencies: NDArray[np.float64], rng: Random) -> Sequence[int]:
    """The ranks of the texts in an LRU cache in its steady state, in the order of eviction."""
    cached = OrderedDict[int, None]()
    for rank in draw_texts(entries * _DRAWS_PER_ENTRY, frequencies, rng):
        cached[rank] = None
        cached.move_to_end(rank)
        if len(cached) > entries:
            cached.popitem(last=False)
    return list(cached)
