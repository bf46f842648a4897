"""Which candidates of a shard the front needs to see. Pure.

The front takes the nearest passages of all shards and the best of them by words: two ways to become
a candidate. Where the lines are drawn depends on all shards, and no line is drawn wider than a
shard's own.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import Any


@dataclass(frozen=True, slots=True)
class RankedBound:
    """A way to become a candidate."""

    figures: Sequence[float]
    """Of each passage; lower is better."""
    line: float
    """The highest figure with which this shard alone would let in."""


def contenders(keys: Sequence[Any], ways: Iterable[RankedBound], passages: int) -> list[int]:
    """Places of the hits that may be among the best `passages` of the candidates of all shards, in
    the order of their `keys`, which are the lower the better. `passages` is at least 1.

    Where a hit becomes a candidate by one way, so do all that have no higher figure. If enough of
    these are better, it is not read then. It is left out if that is so for every way that is open
    to it. Where the line is drawn depends on those that are left out, too, so the front is told the
    figures of all.
    """
    order = sorted(range(len(keys)), key=keys.__getitem__)
    kept = {place for way in ways for place in _let_in(keys, order, way, passages)}
    return [place for place in order if place in kept]


def _let_in(
    keys: Sequence[Any], order: Sequence[int], way: RankedBound, passages: int
) -> Iterator[int]:
    """Those that fewer than `passages` beat in key without having a higher figure."""
    lowest: list[float] = []  # of those that are better, negative: so the highest comes first
    equal: list[float] = []
    key = None
    for place in order:
        figure = way.figures[place]
        if not figure <= way.line:
            continue
        if keys[place] != key:
            for each in equal:
                (heappush if len(lowest) < passages else heappushpop)(lowest, -each)
            key, equal = keys[place], []
        if len(lowest) < passages or figure < -lowest[0]:  # others change none of the lowest
            equal.append(figure)
            yield place
