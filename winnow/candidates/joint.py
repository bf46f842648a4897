"""Joins the candidates of several shards that one call retrieves from. Pure.

A single shard returns each hit that could be among the best of all shards. Several shards together
return fewer: a hit is also left out if enough hits of the other shards outrank it.
"""

from collections.abc import Sequence
from dataclasses import replace

from winnow.candidates.limits import candidate_limits
from winnow.candidates.top_k_bound import CandidateRule, possible_top_k
from winnow.domain.passage import Hit
from winnow.domain.question import RetrievalDepth
from winnow.searcher import Retrieved


def join(
    results: Sequence[Retrieved | Exception], depth: RetrievalDepth
) -> list[Retrieved | Exception]:
    """Leaves out outranked hits from the results of several shards; errors stay in their places."""
    found = [each for each in results if isinstance(each, Retrieved)]
    joined = iter(without_outranked(found, depth))
    return [next(joined) if isinstance(each, Retrieved) else each for each in results]


def without_outranked(results: Sequence[Retrieved], depth: RetrievalDepth) -> list[Retrieved]:
    """Leaves out hits and candidates that cannot be among the best of all shards.

    The front chooses the same passages from these results as from all hits of these shards. Each
    result keeps its place and its order. The rule is that of a single shard, `top_k_bound`.
    """
    limits = candidate_limits(results, depth)
    max_distance, min_words = limits.max_distance, limits.min_words
    places = [(place, hit) for place, own in enumerate(results) for hit in own.hits]
    rules = [
        CandidateRule([hit.distance for _, hit in places], max_distance),
        CandidateRule([-hit.words for _, hit in places], -min_words),
    ]
    keys = [(hit.hybrid_distance, hit.passage_id) for _, hit in places]
    kept: list[list[Hit]] = [[] for _ in results]
    for index in possible_top_k(keys, rules, depth.passages):
        place, hit = places[index]
        kept[place].append(hit)
    return [
        replace(
            own,
            hits=tuple(hits),
            candidate_distances=tuple(d for d in own.candidate_distances if d <= max_distance),
            candidate_words=tuple(score for score in own.candidate_words if score >= min_words),
        )
        for own, hits in zip(results, kept, strict=True)
    ]
