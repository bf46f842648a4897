"""When enough was read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.stopping import StoppingRule, wave_ends


@pytest.mark.parametrize(
    ("best", "first", "unread", "safe"),
    [
        (10.0, 0.5, 0.5, True),
        (8.0, 0.5, 0.5, True),  # 8 + 2 * 0.5 is the bar
        (7.9, 0.5, 0.5, False),
        (7.9, 0.5, 0.6, True),  # the unread one is further away
        (7.9, 0.4, 0.5, True),  # the first one was nearer
        (-math.inf, 0.5, 4.0, False),  # nothing was read
        (math.nan, 0.5, 4.0, False),
    ],
)
def test_an_answer_is_safe_if_it_is_sure_and_what_is_unread_is_far(
    best: float, first: float, unread: float, safe: bool
) -> None:
    assert StoppingRule(nearness=2.0, gap=3.0, bar=9.0).safe(best, first, unread) is safe


scores = st.floats(-50, 50)


distances = st.floats(0, 4)


@given(scores, scores, distances, distances, distances)
def test_what_is_safe_from_a_passage_is_safe_from_those_further_away(
    best: float, bar: float, first: float, one: float, other: float
) -> None:
    rule = StoppingRule(1.0, 3.0, bar)
    near, far = sorted((one, other))
    assert not rule.safe(best, first, near) or rule.safe(best, first, far)


@given(st.integers(0, 100), st.integers(1, 12))
def test_waves_end_with_the_last_passage_and_double(passages: int, first: int) -> None:
    ends = wave_ends(passages, first)
    assert ends == sorted(set(ends))
    assert (ends[-1] if ends else 0) == passages
    assert all(end == first * 2**place for place, end in enumerate(ends[:-1]))
