"""How fast work gets done while there is any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.policy.pace import Pace


def test_before_anything_is_done_the_pace_is_unknown() -> None:
    clock = ManualClock()
    pace = Pace(2.0, clock)
    pace.begin()
    clock.advance(1.0)
    pace.done(0)
    assert pace.seconds is None


def test_time_is_counted_once_for_all_that_work() -> None:
    clock = ManualClock()
    pace = Pace(1e9, clock)
    pace.begin()
    clock.advance(1.0)
    pace.done(10)
    pace.done(10)
    assert pace.seconds == pytest.approx(0.05), "twenty pieces in a second, by two threads"


def test_idle_time_does_not_count() -> None:
    clock = ManualClock()
    pace = Pace(1e9, clock)
    for _ in range(3):
        clock.advance(60.0)
        pace.begin()
        clock.advance(0.5)
        pace.done(5)
    assert pace.seconds == pytest.approx(0.1)


def test_time_in_which_nothing_got_done_counts() -> None:
    clock = ManualClock()
    pace = Pace(1e9, clock)
    pace.begin()
    clock.advance(3.0)
    pace.done(0)
    clock.advance(1.0)
    pace.done(2)
    assert pace.seconds == pytest.approx(2.0)


def test_the_pace_follows_what_is_recent() -> None:
    clock = ManualClock()
    pace = Pace(2.0, clock)
    pace.begin()
    for seconds in [0.01] * 500 + [0.05] * 400:
        clock.advance(seconds)
        pace.done(1)
    assert pace.seconds == pytest.approx(0.05, rel=0.02)


@given(st.lists(st.tuples(st.floats(0.001, 1), st.integers(0, 9)), min_size=1, max_size=40))
def test_without_decay_the_pace_is_busy_time_by_pieces(steps: list[tuple[float, int]]) -> None:
    clock = ManualClock()
    pace = Pace(1e12, clock)
    pace.begin()
    for seconds, pieces in [*steps, (0.5, 1)]:
        clock.advance(seconds)
        pace.done(pieces)
    busy = sum(seconds for seconds, _ in steps) + 0.5
    assert pace.seconds == pytest.approx(busy / (sum(pieces for _, pieces in steps) + 1))
