"""When a late request is hedged, and how much load that may add."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.replicas.policy.hedging import (
    HedgeBudget,
    HedgeDelay,
    HedgeDelays,
    HedgeSettings,
    LatencyEstimate,
)


def delay(samples: list[float], settings: HedgeSettings) -> HedgeDelay:
    own = HedgeDelay(settings, ManualClock())
    for seconds in samples:
        own.observe(seconds)
    return own


def estimate(samples: list[float], settings: HedgeSettings) -> LatencyEstimate:
    found = delay(samples, settings).estimate()
    assert found is not None
    return found


def budget(requests: int, settings: HedgeSettings) -> HedgeBudget:
    own = HedgeBudget(settings)
    for _ in range(requests):
        own.earn()
    return own


def test_nothing_is_late_before_enough_is_known() -> None:
    settings = HedgeSettings(min_samples=20)
    assert delay([0.01] * 19, settings).estimate() is None
    assert estimate([0.01] * 20, settings) == LatencyEstimate(
        0.01, late_after=0.01, overdue_after=0.02
    )


def test_a_request_is_late_after_the_recent_p95() -> None:
    samples = [n / 1000 for n in range(1, 101)]
    assert estimate(samples, HedgeSettings()).late_after == 0.095
    assert estimate(samples, HedgeSettings(quantile=0.5)).late_after == 0.050
    assert estimate(samples, HedgeSettings()).typical == 0.050


def test_the_delay_follows_what_is_recent() -> None:
    settings = HedgeSettings(window=50)
    assert estimate([0.010] * 500 + [0.080] * 50, settings).late_after == 0.080
    assert estimate([0.080] * 500 + [0.010] * 50, settings).late_after == 0.010


def test_what_took_long_under_load_is_late_some_seconds_after() -> None:
    clock = ManualClock()
    own = HedgeDelay(HedgeSettings(max_age=10.0), clock)
    for seconds in [0.8] * 150 + [0.1] * 20:
        own.observe(seconds)
    assert own.estimate() == LatencyEstimate(0.8, late_after=0.8, overdue_after=1.6)
    clock.advance(10.5)
    assert own.estimate() == LatencyEstimate(0.1, late_after=0.1, overdue_after=0.2), (
        "the last twenty are all that is known"
    )


def test_what_is_seldom_asked_is_judged_by_what_is_less_work() -> None:
    delays = HedgeDelays(HedgeSettings(min_samples=1), ManualClock())
    assert delays.estimate("read", 9) is None
    delays.delay_of("read", 3).observe(0.1)
    assert delays.estimate("read", 2) == LatencyEstimate(0.1, 0.1, 0.2), "of about as many"
    assert delays.estimate("read", 7) == LatencyEstimate(0.2, 0.2, 0.4), "of half as many"
    assert delays.estimate("read", 9) is None, "nothing like it is known"
    assert delays.estimate("read", 1) is None, "nor of fewer"
    delays.delay_of("retrieve", 0).observe(0.01)
    assert delays.estimate("retrieve", 0) == LatencyEstimate(0.01, 0.01, 0.02)
    assert delays.estimate("retrieve", 1) is None
    assert delays.estimate("search", 9) is None


def test_no_request_is_late_at_once() -> None:
    assert estimate([0.0] * 50, HedgeSettings(min_delay=0.002)).late_after == 0.002


@given(st.lists(st.floats(0.001, 10), min_size=20, max_size=80))
def test_at_most_a_twentieth_of_the_recent_answers_took_longer(samples: list[float]) -> None:
    late = estimate(samples, HedgeSettings()).late_after
    assert late in samples
    assert sum(seconds > late for seconds in samples) <= math.floor(0.05 * len(samples) + 1e-9)


def test_a_request_is_overdue_after_several_delays() -> None:
    assert estimate([0.01] * 20, HedgeSettings(overdue_factor=4.0)).overdue_after == 0.04
    assert delay([0.01] * 19, HedgeSettings(overdue_factor=4.0)).estimate() is None


def test_a_replica_that_hangs_from_the_first_request_on_finds_a_few_hedges() -> None:
    own = budget(1, HedgeSettings(initial=2, reserve=10))
    assert not own.spend(), "being late is no reason yet"
    assert [own.spend(urgent=True) for _ in range(3)] == [True, True, False]


def test_further_hedges_must_be_earned() -> None:
    settings = HedgeSettings(budget=0.05, surcharge=0, reserve=0, initial=0)
    assert not budget(19, settings).spend()
    assert budget(20, settings).spend()


def test_late_requests_leave_the_reserve_to_overdue_ones() -> None:
    own = budget(100_000, HedgeSettings(burst=5, surcharge=0, reserve=3))
    assert [own.spend() for _ in range(4)] == [True, True, False, False]
    assert [own.spend(urgent=True) for _ in range(4)] == [True, True, True, False]


def test_a_cluster_that_is_slow_all_over_gets_no_more_than_the_budget() -> None:
    own = budget(0, HedgeSettings(budget=0.05, initial=3))
    sent = 0
    for _ in range(1000):
        own.earn()
        sent += own.spend() or own.spend(urgent=True)
    assert sent == 50 + 3


def test_what_was_not_spent_is_kept_for_a_burst_and_no_more() -> None:
    own = budget(100_000, HedgeSettings(burst=7, surcharge=0, reserve=0))
    assert [own.spend() for _ in range(9)] == [True] * 7 + [False] * 2


def test_without_a_budget_nothing_is_hedged() -> None:
    assert not budget(100_000, HedgeSettings(budget=0.0)).spend(urgent=True)


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=300),
    st.sampled_from([0.0, 0.01, 0.05, 0.07, 0.1, 0.3, 1.0]),
    st.integers(1, 20),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_hedges_never_exceed_their_share_of_the_requests(
    history: list[tuple[bool, bool]], share: float, burst: int, reserve: int, start: int
) -> None:
    own = HedgeBudget(HedgeSettings(budget=share, burst=burst, reserve=reserve, initial=start))
    sent = 0
    for requests, (is_late, is_overdue) in enumerate(history, start=1):
        own.earn()
        sent += is_late and own.spend(is_overdue)
        assert sent <= share * requests + start + 1e-9


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5])
@pytest.mark.parametrize(("urgent", "used", "kept"), [(True, 1.0, 0), (False, 0.8, 2.4)])
def test_urgent_hedges_can_use_all_of_the_budget_and_late_ones_most(
    share: float, urgent: bool, used: float, kept: float
) -> None:
    own = budget(0, HedgeSettings(budget=share, surcharge=0.25, reserve=3, initial=0))
    sent = 0
    for _ in range(1000):
        own.earn()
        sent += own.spend(urgent)
    assert sent == pytest.approx(1000 * share * used - kept, abs=1)
