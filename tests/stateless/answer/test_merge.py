"""Merging does not depend on how the index is cut or who replies first."""

import math
import random

from fakes import reading
from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.reading import Reading, rank
from winnow.stateless.answer.merge import merge

found = st.lists(
    st.builds(
        reading,
        st.integers(0, 99).map("p{}".format),
        st.one_of(st.floats(-20, 20), st.just(math.nan), st.sampled_from([0.0, 1.0])),
    ),
    unique_by=lambda r: r.passage.id,
    max_size=20,
)


@given(found, st.integers(1, 8), st.integers(1, 25), st.randoms(use_true_random=False))
def test_the_cut_into_shards_changes_nothing(
    readings: list[Reading], shards: int, most: int, chance: random.Random
) -> None:
    cut: dict[int, list[Reading]] = {shard: [] for shard in range(shards)}
    for each in readings:
        cut[chance.randrange(shards)].append(each)
    shuffled = list(cut.items())
    chance.shuffle(shuffled)
    together = [a.reading.passage.id for a in merge({0: readings}, most)]
    apart = [a.reading.passage.id for a in merge(dict(shuffled), most)]
    assert apart == together
    assert together == [r.passage.id for r in sorted(readings, key=rank)][:most]


def test_a_reading_without_a_span_is_no_answer() -> None:
    empty = Reading(
        passage=reading("p").passage,
        start=0,
        end=0,
        score=99.0,
        relevance=0.0,
        span_score=0.0,
        distance=0.0,
        hybrid_distance=0.0,
    )
    assert [a.reading.passage.id for a in merge({0: [empty], 1: [reading("q")]}, 5)] == ["q"]


def test_an_answer_remembers_its_shard() -> None:
    assert [a.shard for a in merge({4: [reading("a", 1)], 7: [reading("b", 2)]}, 5)] == [7, 4]
