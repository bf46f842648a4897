"""Which passages are read under the global scope."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from content_node.shard.contenders import contenders
from stateless.answer.choose import best_overall, by_shard
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import Depth
from winnow.searcher import Retrieved


def hit(name: int, distance: int, hybrid_distance: int) -> Hit:
    return Hit(0, str(name), distance / 16, hybrid_distance / 16)


hits = st.lists(
    st.builds(hit, st.integers(0, 99), st.integers(0, 99), st.integers(0, 5)),
    unique_by=(lambda hit: hit.passage_id, lambda hit: hit.distance),
    min_size=1,
    max_size=12,
)
depths = st.builds(Depth, st.integers(1, 3), st.integers(0, 6))


def spread_over_shards(found: list[Hit], depth: Depth, chance: random.Random) -> list[list[Hit]]:
    """Each shard's candidates."""
    spread: list[list[Hit]] = [[], [], []]
    for each in found:
        chance.choice(spread).append(each)
    return [sorted(own, key=lambda hit: hit.distance)[: depth.looked_at] for own in spread]


def retrieved(own: list[Hit], depth: Depth) -> Retrieved:
    """What a shard with these candidates says."""
    distances = np.array([hit.distance for hit in own], np.float32)
    hybrid_distance = np.array([hit.hybrid_distance for hit in own], np.float32)
    kept = [own[place] for place in contenders(distances, hybrid_distance, depth.passages)]
    return Retrieved(tuple(kept), tuple(distances.tolist()), ShardTimings())


@given(hits, depths, st.randoms(use_true_random=False))
def test_the_best_of_the_nearest_are_chosen_however_they_are_spread(
    found: list[Hit], depth: Depth, chance: random.Random
) -> None:
    spread = dict(enumerate(spread_over_shards(found, depth, chance)))
    chosen = best_overall({n: retrieved(own, depth) for n, own in spread.items()}, depth)
    near = sorted(found, key=lambda hit: hit.distance)[: depth.looked_at]
    best = sorted(near, key=lambda hit: (hit.hybrid_distance, hit.passage_id))[: depth.passages]
    assert [hit for _, hit in chosen] == best
    own = by_shard(chosen)
    assert sum(map(len, own.values())) == len(chosen)
    assert all(some and set(some) <= set(spread[shard]) for shard, some in own.items())


def test_a_passage_that_a_shard_leaves_out_still_counts_among_the_nearest() -> None:
    first = [hit(1, 2, 4), hit(2, 4, 8)]  # the second is left out, and is one of the two nearest
    second = [hit(3, 8, 2)]  # not one of them, although the best by words
    depth = Depth(1, candidates=2)
    found = {n: retrieved(own, depth) for n, own in enumerate((first, second))}
    assert [hit.passage_id for hit in found[0].hits] == ["1"]
    assert best_overall(found, depth) == [(0, first[0])]


def test_without_shards_nothing_is_chosen() -> None:
    assert best_overall({}, Depth(3)) == []


def test_a_hit_that_enough_others_beat_by_both_measures_is_left_out() -> None:
    distances = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    hybrid_distance = np.array([0.1, 0.2, 0.3, 0.0], np.float32)
    assert contenders(distances, hybrid_distance, 2) == [0, 1, 3]
    assert contenders(distances, hybrid_distance, 3) == [0, 1, 2, 3]
