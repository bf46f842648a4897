"""Which candidates of a shard the front needs to see. Pure.

The front takes the nearest passages of all shards and the best of them by words: two ways to become
a candidate. Where the lines are drawn depends on all shards, and no line is drawn wider than a
shard's own.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any


@dataclass(frozen=True, slots=True)
class Way:
    """A way to become a candidate."""

    figures: Sequence[float]
    """Of each passage; lower is better."""
    line: float
    """The highest figure with which this shard alone would let in."""


def contenders(keys: Sequence[Any], ways: Iterable[Way], passages: int) -> list[int]:
    """Places of the hits that may be among the best `passages` of the candidates of all shards, in
    the order of their `keys`, which are the lower the better.

    Where a hit becomes a candidate by one way, so do all that have no higher figure. If enough of
    these are better, it is not read then. It is left out if that is so for every way that is open
    to it. Where the line is drawn depends on those that are left out, too, so the front is told the
    figures of all.
    """
    order = sorted(range(len(keys)), key=lambda place: keys[place])
    kept: set[int] = set()
    for way in ways:
        better: list[float] = []
        for _, equal in groupby(order, key=lambda place: keys[place]):
            own = [place for place in equal if way.figures[place] <= way.line]
            kept.update(p for p in own if bisect_right(better, way.figures[p]) < passages)
            for place in own:
                insort(better, way.figures[place])
    return [place for place in order if place in kept]
