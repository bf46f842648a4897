"""Limits of distance and words beyond which a passage is no candidate of a question. Pure.

Candidates are the nearest passages of all shards, and the best by words. The limits of some of the
shards are never tighter than those of all.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from winnow.domain.question import RetrievalDepth


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLimits:
    """A passage within either limit is a candidate."""

    max_distance: float
    """The highest distance of a candidate; -inf if none is found by distance."""
    min_words: float
    """The lowest BM25 score of a candidate, in single precision; inf if none is found by words."""


class CandidateCosts(Protocol):
    """What decides which passages of a shard are candidates."""

    @property
    def candidate_distances(self) -> Sequence[float]:
        """Distances of the shard's own candidates, nearest first."""

    @property
    def candidate_words(self) -> Sequence[float]:
        """BM25 scores of the shard's best passages by words, in single precision, best first."""


def candidate_limits(shards: Sequence[CandidateCosts], depth: RetrievalDepth) -> CandidateLimits:
    """Returns the limits of several shards together."""
    distances = [distance for own in shards for distance in own.candidate_distances]
    words = [-score for own in shards for score in own.candidate_words]
    return CandidateLimits(
        max_distance=_kth_cost(distances, depth.nearest_candidates),
        min_words=-_kth_cost(words, depth.word_candidates),
    )


def _kth_cost(costs: Sequence[float], k: int) -> float:
    """Returns the highest cost of a candidate that may be among the `k` lowest of all shards."""
    if not k:
        return -math.inf  # by this rule no passage is a candidate
    return heapq.nsmallest(k, costs)[-1] if len(costs) >= k else math.inf
