"""Which passages are read under the global scope."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from winnow.candidates.joint import without_outranked
from winnow.candidates.top_k_bound import CandidateRule, possible_top_k
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import RetrievalDepth
from winnow.searcher import Retrieved
from winnow.stateless.answer.choose import best_overall, by_shard


def hit(name: int, distance: int, words: int, weight: int = 1) -> Hit:
    return Hit(
        row=0,
        passage_id=f"{name:02}",
        distance=distance / 16,
        hybrid_distance=(distance - weight * words) / 16,
        words=words / 8,
    )


hits = st.lists(
    # words are often the same for many passages, distances are not
    st.builds(hit, st.integers(0, 99), st.integers(0, 99), st.integers(0, 5), st.integers(0, 9)),
    unique_by=(lambda hit: hit.passage_id, lambda hit: hit.distance),
    min_size=1,
    max_size=20,
)
depths = st.builds(
    RetrievalDepth,
    passages=st.integers(1, 3),
    candidates=st.integers(0, 6),
    by_words=st.integers(0, 6),
)


def near(own: list[Hit], depth: RetrievalDepth) -> list[Hit]:
    return sorted(own, key=lambda hit: hit.distance)[: depth.nearest_candidates]


def by_words(own: list[Hit], depth: RetrievalDepth) -> list[Hit]:
    """The best by words, and all that are as good as the last of them."""
    having = sorted((hit for hit in own if hit.words > 0), key=lambda hit: -hit.words)
    least = min((hit.words for hit in having[: depth.word_candidates]), default=np.inf)
    return [hit for hit in having if hit.words >= least]


def candidates(own: list[Hit], depth: RetrievalDepth) -> list[Hit]:
    return list(dict.fromkeys([*near(own, depth), *by_words(own, depth)]))


def retrieved(own: list[Hit], depth: RetrievalDepth) -> Retrieved:
    """What a shard with these passages says."""
    distances = [hit.distance for hit in near(own, depth)]
    words = [hit.words for hit in by_words(own, depth)]
    found = candidates(own, depth)
    ways = [
        CandidateRule([hit.distance for hit in found], max(distances, default=-np.inf)),
        CandidateRule([-hit.words for hit in found], -min(words, default=np.inf)),
    ]
    kept = possible_top_k([key(hit) for hit in found], ways, depth.passages)
    hits, best = tuple(found[place] for place in kept), tuple(words[: depth.word_candidates])
    return Retrieved(hits, tuple(distances), ShardTimings(), candidate_words=best)


def key(hit: Hit) -> tuple[float, str]:
    return hit.hybrid_distance, hit.passage_id


@given(hits, depths, st.sampled_from([1, 2, 3, 8]), st.randoms(use_true_random=False))
def test_the_best_candidates_are_chosen_however_they_are_spread(
    found: list[Hit], depth: RetrievalDepth, shards: int, chance: random.Random
) -> None:
    spread: dict[int, list[Hit]] = {shard: [] for shard in range(shards)}
    for each in found:
        spread[chance.randrange(shards)].append(each)
    chosen = best_overall({n: retrieved(own, depth) for n, own in spread.items()}, depth)
    best = sorted(candidates(found, depth), key=key)[: depth.passages]
    assert [hit for _, hit in chosen] == best
    own = by_shard(chosen)
    assert sum(map(len, own.values())) == len(chosen)
    assert all(some and set(some) <= set(spread[shard]) for shard, some in own.items())


@given(hits, depths, st.integers(1, 8), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_same_passages_are_chosen_if_nodes_put_their_shards_together(
    found: list[Hit], depth: RetrievalDepth, shards: int, nodes: int, chance: random.Random
) -> None:
    spread: dict[int, list[Hit]] = {shard: [] for shard in range(shards)}
    for each in found:
        spread[chance.randrange(shards)].append(each)
    alone = {shard: retrieved(own, depth) for shard, own in spread.items()}
    together: dict[int, Retrieved] = {}
    for node in range(nodes):
        own = [shard for shard in spread if shard % nodes == node]
        joined = without_outranked([alone[shard] for shard in own], depth)
        together |= dict(zip(own, joined, strict=True))
    assert best_overall(together, depth) == best_overall(alone, depth)


def test_a_node_leaves_out_what_its_other_shards_outrank() -> None:
    depth = RetrievalDepth(passages=1, candidates=2)
    near, far = retrieved([hit(1, 2, 0), hit(2, 4, 0)], depth), retrieved([hit(3, 8, 0)], depth)
    first, second = without_outranked([near, far], depth)
    assert [each.passage_id for each in first.hits] == ["01"]
    assert (second.hits, second.candidate_distances) == ((), ())


@given(hits, depths)
def test_the_first_hits_of_a_shard_are_its_own_best(
    found: list[Hit], depth: RetrievalDepth
) -> None:
    best = sorted(candidates(found, depth), key=key)[: depth.passages]
    assert list(retrieved(found, depth).hits[: depth.passages]) == best


def test_a_passage_that_a_shard_leaves_out_still_counts_among_the_nearest() -> None:
    first = [hit(1, 2, 0), hit(2, 4, 0)]  # the second is left out, and is one of the two nearest
    second = [hit(3, 8, 7)]  # not one of them, although the best by words
    depth = RetrievalDepth(passages=1, candidates=2)
    found = {n: retrieved(own, depth) for n, own in enumerate((first, second))}
    assert [hit.passage_id for hit in found[0].hits] == ["01"]
    assert best_overall(found, depth) == [(0, first[0])]


def test_a_passage_is_chosen_for_its_words_however_far_it_is() -> None:
    found = {
        0: retrieved(
            [hit(1, 2, 0), hit(2, 3, 0), hit(3, 90, 9, weight=10)],
            RetrievalDepth(passages=1, candidates=2, by_words=1),
        )
    }
    assert [
        hit.passage_id
        for _, hit in best_overall(found, RetrievalDepth(passages=1, candidates=2, by_words=1))
    ] == ["03"]
    assert [
        hit.passage_id for _, hit in best_overall(found, RetrievalDepth(passages=1, candidates=2))
    ] == ["01"]


def test_words_that_no_passage_has_find_none() -> None:
    depth = RetrievalDepth(passages=2, by_words=2)
    assert best_overall({0: retrieved([hit(1, 2, 0), hit(2, 3, 0)], depth)}, depth) == []


def test_without_shards_nothing_is_chosen() -> None:
    assert best_overall({}, RetrievalDepth(passages=3)) == []
    assert best_overall({}, RetrievalDepth(passages=3, by_words=3)) == []


lines = st.sampled_from([-np.inf, 0.0, 1.0, 2.0, np.inf])


@given(st.data(), st.integers(0, 12), st.integers(1, 4))
def test_a_hit_is_left_out_if_enough_beat_it_by_key_and_in_each_way_that_is_open_to_it(
    data: st.DataObject, hits: int, passages: int
) -> None:
    figures = st.lists(st.integers(0, 3).map(float), min_size=hits, max_size=hits)
    keys, ways = (
        data.draw(figures),
        data.draw(st.lists(st.builds(CandidateRule, figures, lines), max_size=2)),
    )

    def let_in(hit: int, way: CandidateRule) -> bool:
        own = way.costs[hit]
        beaten = [n for n in range(hits) if keys[n] < keys[hit] and way.costs[n] <= own]
        return own <= way.max_cost and len(beaten) < passages

    found = [hit for hit in range(hits) if any(let_in(hit, way) for way in ways)]
    assert possible_top_k(keys, ways, passages) == sorted(found, key=keys.__getitem__)


def test_a_hit_that_enough_others_beat_by_both_measures_is_left_out() -> None:
    distances = CandidateRule([0.1, 0.2, 0.3, 0.4], 0.4)
    assert possible_top_k([0.1, 0.2, 0.3, 0.0], [distances], 2) == [3, 0, 1]
    assert possible_top_k([0.1, 0.2, 0.3, 0.0], [distances], 3) == [3, 0, 1, 2]


def test_a_hit_that_may_be_there_for_its_words_is_beaten_only_by_better_words() -> None:
    distances, words = CandidateRule([0.1, 0.2, 0.3], 0.3), CandidateRule([-1.0, -2.0, -9.0], -9.0)
    keys = [0.1, 0.2, 0.3]
    assert possible_top_k(keys, [distances], 1) == [0]
    assert possible_top_k(keys, [distances, words], 1) == [0, 2]


def test_neither_of_two_equal_hits_beats_the_other() -> None:
    assert possible_top_k([1.0, 1.0], [CandidateRule([0.5, 0.5], 1.0)], 1) == [0, 1]
