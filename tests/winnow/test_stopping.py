"""When enough was read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.stopping import StoppingRule, wave_ends


@pytest.mark.parametrize(
    ("best", "distance", "safe"),
    [
        (10.0, 0.5, True),
        (8.0, 0.5, True),  # the unread one can reach 9 - 2 * 0.5
        (7.9, 0.5, False),
        (7.9, 0.6, True),  # further away
        (-math.inf, 4.0, False),  # nothing was read
        (math.nan, 4.0, False),
    ],
)
def test_an_answer_is_safe_if_no_unread_passage_can_reach_it(
    best: float, distance: float, safe: bool
) -> None:
    assert StoppingRule(reach=9.0, distance_weight=-2.0).safe(best, distance) is safe


scores = st.floats(-50, 50)


@given(scores, scores, st.floats(0, 4), st.floats(0, 4))
def test_what_is_safe_from_a_passage_is_safe_from_those_further_away(
    best: float, reach: float, one: float, other: float
) -> None:
    rule = StoppingRule(reach, -3.0)
    near, far = sorted((one, other))
    assert not rule.safe(best, near) or rule.safe(best, far)


@given(st.integers(0, 100), st.integers(1, 12))
def test_waves_end_with_the_last_passage_and_double(passages: int, first: int) -> None:
    ends = wave_ends(passages, first)
    assert ends == sorted(set(ends))
    assert (ends[-1] if ends else 0) == passages
    assert all(end == first * 2**place for place, end in enumerate(ends[:-1]))
