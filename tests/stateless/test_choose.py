"""Which passages are read under the global scope."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from content_node.shard.contenders import contenders
from stateless.choose import best_overall, by_shard
from winnow.domain.passage import Hit
from winnow.domain.question import Depth

few = st.sampled_from([0.125, 0.25, 0.5, 0.75])
hits = st.lists(
    st.builds(Hit, st.integers(0, 99), st.integers(0, 99).map(str), few, few),
    unique_by=lambda hit: hit.passage_id,
    max_size=30,
)
depths = st.builds(Depth, st.integers(1, 10), st.integers(0, 20))


def spread_over_shards(found: list[Hit], chance: random.Random) -> dict[int, list[Hit]]:
    spread: dict[int, list[Hit]] = {}
    for hit in found:
        spread.setdefault(chance.randrange(4), []).append(hit)
    return spread


@given(hits, depths, st.randoms(use_true_random=False))
def test_the_best_of_the_nearest_are_chosen_however_they_are_spread(
    found: list[Hit], depth: Depth, chance: random.Random
) -> None:
    spread = spread_over_shards(found, chance)
    chosen = best_overall(spread, depth)
    near = sorted(found, key=lambda hit: (hit.distance, hit.passage_id))[: depth.looked_at]
    best = sorted(near, key=lambda hit: (hit.fused, hit.passage_id))[: depth.passages]
    assert [hit for _, hit in chosen] == best
    own = by_shard(chosen)
    assert sum(map(len, own.values())) == len(chosen)
    assert all(some and set(some) <= set(spread[shard]) for shard, some in own.items())


@given(hits, depths, st.randoms(use_true_random=False))
def test_what_shards_leave_out_would_not_have_been_chosen(
    found: list[Hit], depth: Depth, chance: random.Random
) -> None:
    spread = spread_over_shards(found, chance)
    seen = {}
    for shard, own in spread.items():
        distances = np.array([hit.distance for hit in own], np.float32)
        fused = np.array([hit.fused for hit in own], np.float32)
        seen[shard] = [own[place] for place in contenders(distances, fused, depth.passages)]
    assert best_overall(seen, depth) == best_overall(spread, depth)


def test_a_hit_that_enough_others_beat_by_both_measures_is_left_out() -> None:
    distances = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    fused = np.array([0.1, 0.2, 0.3, 0.0], np.float32)
    assert contenders(distances, fused, 2) == [0, 1, 3]
    assert contenders(distances, fused, 3) == [0, 1, 2, 3]
