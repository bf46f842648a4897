"""Which candidates of a shard the front needs to see. Pure.

The front takes the nearest passages of all shards and the best passages by words: two ways to
become a candidate. Each way has a bound that depends on all shards. It is never wider than the
shard's own.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import Any


@dataclass(frozen=True, slots=True)
class RankedBound:
    """One way to become a candidate."""

    figures: Sequence[float]
    """Figure of each passage; lower is better."""
    line: float
    """The highest figure that this shard alone would let in."""


def contenders(keys: Sequence[Any], bounds: Iterable[RankedBound], passages: int) -> list[int]:
    """Returns places of hits that may be among the best `passages` candidates of all shards, in the
    order of their `keys`. Lower keys are better; `passages` is at least 1.

    If a hit becomes a candidate by one bound, so do all hits without a higher figure. If `passages`
    of them have better keys, the hit is not read. A hit is left out if this holds for every bound
    that lets it in. Figures of left-out hits move the bound, too, so the front gets those of all.
    """
    order = sorted(range(len(keys)), key=keys.__getitem__)
    kept = {place for bound in bounds for place in _let_in(keys, order, bound, passages)}
    return [place for place in order if place in kept]


def _let_in(
    keys: Sequence[Any], order: Sequence[int], bound: RankedBound, passages: int
) -> Iterator[int]:
    """Yields places for which fewer than `passages` have a better key and no higher figure."""
    lowest: list[float] = []  # figures with better keys, negated: so the highest comes first
    equal: list[float] = []
    key = None
    for place in order:
        figure = bound.figures[place]
        if not figure <= bound.line:
            continue
        if keys[place] != key:
            for each in equal:
                (heappush if len(lowest) < passages else heappushpop)(lowest, -each)
            key, equal = keys[place], []
        if len(lowest) < passages or figure < -lowest[0]:  # other figures do not change `lowest`
            equal.append(figure)
            yield place
