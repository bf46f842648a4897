"""The total order of readings."""

import math
import random
from dataclasses import replace

from fakes import reading
from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.reading import Reading, rank

scores = st.one_of(st.floats(allow_nan=True), st.sampled_from([0.0, 1.0, math.nan]))
readings = st.lists(
    st.builds(
        lambda i, score, span: replace(reading(f"p{i}", score), span_score=span),
        st.integers(0, 50),
        scores,
        scores,
    ),
    unique_by=lambda r: r.passage.id,
    max_size=12,
)


@given(readings, st.randoms(use_true_random=False))
def test_order_does_not_depend_on_arrival(found: list[Reading], chance: random.Random) -> None:
    shuffled = found[:]
    chance.shuffle(shuffled)
    ordered = [r.passage.id for r in sorted(found, key=rank)]
    assert [r.passage.id for r in sorted(shuffled, key=rank)] == ordered


@given(readings)
def test_a_score_that_is_not_a_number_comes_last(found: list[Reading]) -> None:
    lost = [math.isnan(r.score) for r in sorted(found, key=rank)]
    assert lost == sorted(lost)


def test_score_decides_then_span_then_passage_id() -> None:
    best = reading("z", 2.0)
    longer = replace(reading("y", 1.0), span_score=5.0)
    first, second = reading("a", 1.0), reading("b", 1.0)
    assert sorted([second, first, longer, best], key=rank) == [best, longer, first, second]
