"""Texts that repeat as words do: the n-th most frequent one comes in proportion to 1 / n.

Pure. How many of them a cache must hold for a share of hits is Che's approximation (Che, Tung and
Wang 2002): a text is in a cache of the most recently used if it came within a characteristic time.
"""

from collections import OrderedDict
from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

DISTINCT = 100_000
"""Texts that may come."""
HITS = 0.4
"""The share that Roblox reports for each of its processes."""
_LOOKS_BEFORE = 20
"""Texts that came before, for each that a cache holds; then it is as it stays."""


def shares(distinct: int = DISTINCT) -> NDArray[np.float64]:
    """How often each text comes, most frequent first; they add up to one."""
    weights = 1.0 / np.arange(1, distinct + 1)
    shared: NDArray[np.float64] = weights / weights.sum()
    return shared


def entries_for(hits: float, each: NDArray[np.float64]) -> int:
    """How many texts a cache must hold so that this share of looks finds its text."""
    low, high = 0.0, float(len(each)) ** 2
    for _ in range(100):
        time = (low + high) / 2
        found = float((each * -np.expm1(-each * time)).sum())
        low, high = (time, high) if found < hits else (low, time)
    return max(round(float(-np.expm1(-each * high).sum())), 1)


def drawn(number: int, each: NDArray[np.float64], chance: Random) -> list[int]:
    """The places of so many texts as they come."""
    uniform = [chance.random() for _ in range(number)]
    places = np.searchsorted(each.cumsum(), uniform)
    return [min(int(place), len(each) - 1) for place in places]


def kept_by_then(entries: int, each: NDArray[np.float64], chance: Random) -> Sequence[int]:
    """The texts in a cache that has been looked into for long, the next to leave first."""
    kept = OrderedDict[int, None]()
    for place in drawn(entries * _LOOKS_BEFORE, each, chance):
        kept[place] = None
        kept.move_to_end(place)
        if len(kept) > entries:
            kept.popitem(last=False)
    return list(kept)
