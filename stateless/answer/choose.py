"""Chooses which passages of which shard are read. Pure."""

import heapq
import math
from collections.abc import Mapping

from winnow.domain.passage import Hit
from winnow.domain.question import RetrievalDepth
from winnow.searcher import Retrieved

Ranked = list[tuple[int, Hit]]
"""Shards with one of their hits, best first."""


def best_overall(found: Mapping[int, Retrieved], depth: RetrievalDepth) -> Ranked:
    """The passages to read.

    Candidates are the cluster's nearest passages and its best by words; the best of these by
    hybrid distance are read. Ties are settled by passage id, so that the choice does not depend on
    how the index is cut.
    """
    nearest = heapq.nsmallest(
        depth.looked_at, (d for own in found.values() for d in own.candidate_distances)
    )
    best = heapq.nlargest(
        depth.best_words, (words for own in found.values() for words in own.candidate_words)
    )
    furthest = nearest[-1] if nearest else -math.inf
    least = best[-1] if best else math.inf
    candidates = [
        (shard, hit)
        for shard, own in found.items()
        for hit in own.hits
        if hit.distance <= furthest or hit.words >= least
    ]
    candidates.sort(key=lambda pair: (pair[1].hybrid_distance, pair[1].passage_id))
    return candidates[: depth.passages]


def by_shard(ranked: Ranked) -> dict[int, list[Hit]]:
    """The hits of each shard, best first; shards with none are left out."""
    chosen: dict[int, list[Hit]] = {}
    for shard, hit in ranked:
        chosen.setdefault(shard, []).append(hit)
    return chosen
