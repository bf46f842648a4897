"""How often a key may be used, on a clock that stands still."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.policy.rates import Rate, TokenBuckets

TWO_A_SECOND = Rate(2.0, 3.0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_a_burst_is_let_through_and_then_one_at_a_time(clock: ManualClock) -> None:
    rates = TokenBuckets(clock)
    assert [rates.take("a", TWO_A_SECOND) for _ in range(3)] == [0, 0, 0]
    assert rates.take("a", TWO_A_SECOND) == pytest.approx(0.5)
    clock.advance(0.5)
    assert rates.take("a", TWO_A_SECOND) == 0
    assert rates.take("a", TWO_A_SECOND) == pytest.approx(0.5)


def test_who_is_refused_loses_nothing_by_asking(clock: ManualClock) -> None:
    rates = TokenBuckets(clock)
    for _ in range(10):
        rates.take("a", TWO_A_SECOND)
    clock.advance(0.5)
    assert rates.take("a", TWO_A_SECOND) == 0


def test_a_quiet_time_saves_up_no_more_than_the_burst(clock: ManualClock) -> None:
    rates = TokenBuckets(clock)
    rates.take("a", TWO_A_SECOND)
    clock.advance(1_000)
    assert [rates.take("a", TWO_A_SECOND) > 0 for _ in range(4)] == [False, False, False, True]


def test_keys_do_not_share(clock: ManualClock) -> None:
    rates = TokenBuckets(clock)
    for _ in range(3):
        rates.take("a", TWO_A_SECOND)
    assert rates.take("b", TWO_A_SECOND) == 0


def test_an_amount_larger_than_the_burst_waits_for_a_full_bucket_and_is_paid_off(
    clock: ManualClock,
) -> None:
    rates = TokenBuckets(clock)
    assert rates.take("a", TWO_A_SECOND, 5) == 0
    assert rates.take("a", TWO_A_SECOND) == pytest.approx(1.5)
    assert rates.take("a", TWO_A_SECOND, 5) == pytest.approx(2.5)


@pytest.mark.parametrize("further", [1, 2, 10])
def test_what_was_begun_before_it_was_all_known_is_no_obstacle_to_the_rest(
    further: int, clock: ManualClock
) -> None:
    rates = TokenBuckets(clock)
    assert rates.take("a", TWO_A_SECOND) == 0
    assert rates.take("a", TWO_A_SECOND, further, prepaid=1) == 0


def test_who_waits_as_long_as_told_may_begin_and_do_the_rest(clock: ManualClock) -> None:
    rates = TokenBuckets(clock)
    assert [rates.take("a", TWO_A_SECOND) for _ in range(2)] == [0, 0]
    wait = rates.take("a", TWO_A_SECOND, 9, prepaid=1)
    assert wait == pytest.approx(1.0), "what was begun stays counted"
    clock.advance(wait)
    assert rates.take("a", TWO_A_SECOND) == 0
    assert rates.take("a", TWO_A_SECOND, 9, prepaid=1) == 0


def test_what_was_done_counts_at_another_rate_too(clock: ManualClock) -> None:
    """A burst is not granted again, and the long wait of a slow rate is not kept."""
    rates = TokenBuckets(clock)
    rates.take("a", Rate(0.001, 3), 3)
    assert rates.take("a", Rate(0.001, 3)) == pytest.approx(1_000)
    assert rates.take("a", Rate(10, 3)) == pytest.approx(0.1)


def test_after_a_rate_was_lowered_no_wait_is_longer_than_that_for_a_full_bucket(
    clock: ManualClock,
) -> None:
    """Tokens of the larger bucket are not added at the lower rate, which could take years."""
    rates = TokenBuckets(clock)
    assert rates.take("a", Rate(1e6, 1e6), 1_000_000) == 0
    assert rates.take("a", Rate(0.5, 1.0)) == pytest.approx(2.0)
    assert rates.take("a", Rate(1e-6, 1.0)) == pytest.approx(1e6)


def test_keys_that_are_gone_are_forgotten(clock: ManualClock) -> None:
    rates = TokenBuckets(clock)
    for _ in range(3):
        rates.take("a", TWO_A_SECOND)
    rates.keep({"b"})
    assert rates.take("a", TWO_A_SECOND) == 0


@given(
    st.lists(st.floats(0, 3), min_size=1, max_size=60),
    st.floats(0.1, 100),
    st.integers(1, 20),
)
def test_no_more_is_let_through_than_burst_and_rate_allow(
    pauses: list[float], per_second: float, burst: int
) -> None:
    clock = ManualClock()
    rates, rate = TokenBuckets(clock), Rate(per_second, burst)
    began, let_through = clock(), 0
    for pause in pauses:
        clock.advance(pause)
        let_through += rates.take("a", rate) == 0
    assert let_through <= burst + (clock() - began) * per_second + 1e-6
