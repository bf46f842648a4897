"""Which passages of which shard are read. Pure."""

from collections.abc import Mapping, Sequence

from winnow.domain.passage import Hit
from winnow.domain.question import Depth

Ranked = list[tuple[int, Hit]]
"""Shards with one of their hits, nearest first."""


def best_overall(hits: Mapping[int, Sequence[Hit]], depth: Depth) -> Ranked:
    """What is read: of the candidates, the nearest of all shards by encoding, the best by distance
    and words.

    Ties are settled by passage id, so that the choice does not depend on how the index is cut.
    """
    every = [(shard, hit) for shard, found in hits.items() for hit in found]
    every.sort(key=lambda pair: (pair[1].distance, pair[1].passage_id))
    near = every[: depth.looked_at]
    near.sort(key=lambda pair: (pair[1].fused, pair[1].passage_id))
    return near[: depth.passages]


def by_shard(ranked: Ranked) -> dict[int, list[Hit]]:
    """The hits of each shard, nearest first; shards with none are left out."""
    chosen: dict[int, list[Hit]] = {}
    for shard, hit in ranked:
        chosen.setdefault(shard, []).append(hit)
    return chosen
