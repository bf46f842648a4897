"""Selects the candidates of a shard that can be in the top k of all shards. Pure.

The front's candidates are the nearest passages of all shards and the best passages by words. The
cost limit of either rule depends on all shards. It is never higher than that of this shard alone.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import Any


@dataclass(frozen=True, slots=True)
class CandidateRule:
    """A rule by which passages become candidates: those of the lowest costs."""

    costs: Sequence[float]
    """Cost of each passage."""
    max_cost: float
    """The highest cost of a candidate if this were the only shard."""


def possible_top_k(keys: Sequence[Any], rules: Iterable[CandidateRule], passages: int) -> list[int]:
    """Returns the indices of passages that may be among the best `passages` candidates of all
    shards, ordered by their `keys`. Lower keys are better; `passages` is at least 1.

    If a passage is a candidate by a rule, so are all passages of lower or equal cost. If at least
    `passages` of those have better keys, the front does not read the passage. A passage is left out
    if this holds for every rule by which it is a candidate.

    The front gets the costs of all candidates, because left-out passages also move its limits.
    """
    order = sorted(range(len(keys)), key=keys.__getitem__)
    selected = {index for rule in rules for index in _possible_by_rule(keys, order, rule, passages)}
    return [index for index in order if index in selected]


def _possible_by_rule(
    keys: Sequence[Any], order: Sequence[int], rule: CandidateRule, passages: int
) -> Iterator[int]:
    """Yields each candidate with fewer than `passages` others of better key and no higher cost."""
    lowest: list[float] = []  # a heap of negated costs of better keys: the highest cost comes first
    pending: list[float] = []  # costs of the current key
    key, limit = None, math.inf
    for index in order:
        cost = rule.costs[index]
        if not cost <= rule.max_cost or cost >= limit:  # the limit only falls
            continue
        if keys[index] != key:
            for each in pending:
                (heappush if len(lowest) < passages else heappushpop)(lowest, -each)
            key, pending = keys[index], []
            if len(lowest) == passages:
                limit = -lowest[0]
        if cost < limit:  # other costs do not change `lowest`
            pending.append(cost)
            yield index
