"""Chooses the passages to read from the hits of all shards. Pure."""

import heapq
import math
from collections.abc import Mapping

from winnow.domain.passage import Hit
from winnow.domain.question import RetrievalDepth
from winnow.searcher import Retrieved

Ranked = list[tuple[int, Hit]]
"""Pairs of a shard and one of its hits, best first."""


def best_overall(retrieved: Mapping[int, Retrieved], depth: RetrievalDepth) -> Ranked:
    """Chooses the passages to read from the hits of all shards.

    Candidates are the nearest passages of the index and its best passages by words. The candidates
    with the least hybrid distance are chosen. Ties are broken by passage id, so the choice does not
    depend on the number of shards.
    """
    nearest = heapq.nsmallest(
        depth.nearest_candidates, (d for own in retrieved.values() for d in own.candidate_distances)
    )
    word_candidates = heapq.nlargest(
        depth.word_candidates,
        (score for own in retrieved.values() for score in own.candidate_words),
    )
    max_distance = nearest[-1] if nearest else -math.inf
    min_word_score = word_candidates[-1] if word_candidates else math.inf
    candidates = [
        (shard, hit)
        for shard, own in retrieved.items()
        for hit in own.hits
        if hit.distance <= max_distance or hit.words >= min_word_score
    ]
    candidates.sort(key=lambda pair: (pair[1].hybrid_distance, pair[1].passage_id))
    return candidates[: depth.passages]


def by_shard(ranked: Ranked) -> dict[int, list[Hit]]:
    """Groups hits by shard, best first. Shards without hits are left out."""
    hits: dict[int, list[Hit]] = {}
    for shard, hit in ranked:
        hits.setdefault(shard, []).append(hit)
    return hits
