"""Means and quantiles of what happened lately."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.policy.recent import DecayedMean, RecentKeys, SlidingQuantile

values = st.floats(0, 1e6)
HALF_LIFE = 4.0


def sliding(window: int) -> SlidingQuantile:
    return SlidingQuantile(window, 10.0, 1, ManualClock())


def test_a_mean_of_nothing_is_unknown() -> None:
    assert DecayedMean(HALF_LIFE, ManualClock()).value is None


def test_a_sample_counts_half_after_a_half_life() -> None:
    clock = ManualClock()
    mean = DecayedMean(HALF_LIFE, clock)
    mean.add(0.0)
    clock.advance(HALF_LIFE)
    mean.add(3.0)
    assert mean.value == pytest.approx((0.5 * 0.0 + 3.0) / 1.5)


@pytest.mark.parametrize(("half_lives", "weight"), [(0, 1.0), (1, 0.5), (3, 0.125)])
def test_the_weight_of_the_last_sample_halves_while_nothing_is_counted(
    half_lives: int, weight: float
) -> None:
    clock = ManualClock()
    mean = DecayedMean(HALF_LIFE, clock)
    mean.add(7.0)
    clock.advance(half_lives * HALF_LIFE)
    assert mean.last_sample_weight() == pytest.approx(weight)
    assert mean.value == 7.0, "an old mean is still the best that is known"


def test_weight_is_that_of_as_many_samples() -> None:
    clock = ManualClock()
    heavy, many = DecayedMean(HALF_LIFE, clock), DecayedMean(HALF_LIFE, clock)
    heavy.add(2.0, weight=3)
    for _ in range(3):
        many.add(2.0)
    heavy.add(10.0)
    many.add(10.0)
    assert heavy.value == many.value == pytest.approx(4.0)


@given(st.lists(st.tuples(st.floats(0, 1e5), values), min_size=1, max_size=30))
def test_a_mean_lies_between_its_samples_however_long_the_pauses(
    samples: list[tuple[float, float]],
) -> None:
    clock = ManualClock()
    mean = DecayedMean(HALF_LIFE, clock)
    for pause, value in samples:
        clock.advance(pause)
        mean.add(value)
    low, high = min(v for _, v in samples), max(v for _, v in samples)
    assert mean.value is not None
    assert low * (1 - 1e-9) - 1e-9 <= mean.value <= high * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    ("share", "quantile"), [(0.0, 1.0), (0.05, 1.0), (0.5, 10.0), (0.95, 19.0), (1.0, 20.0)]
)
def test_a_quantile_is_the_nearest_rank(share: float, quantile: float) -> None:
    window = sliding(20)
    for value in range(20, 0, -1):
        window.add(float(value))
    assert window.quantile(share) == quantile


@given(st.lists(values, min_size=1, max_size=60), st.integers(1, 20), st.floats(0, 1))
def test_only_the_window_counts(samples: list[float], size: int, share: float) -> None:
    window = sliding(size)
    for value in samples:
        window.add(value)
    kept = samples[-size:]
    quantile = window.quantile(share)
    assert window.count() == len(kept)
    assert quantile in kept
    assert sum(value <= quantile for value in kept) >= share * len(kept) - 1e-6
    assert sum(value < quantile for value in kept) <= share * len(kept) + 1e-6


@given(st.lists(values, min_size=1, max_size=30))
def test_quantiles_rise_with_their_share(samples: list[float]) -> None:
    window = sliding(len(samples))
    for value in samples:
        window.add(value)
    for lower, higher in pairwise(n / 10 for n in range(11)):
        assert window.quantile(lower) <= window.quantile(higher)
    assert (window.quantile(0), window.quantile(1)) == (min(samples), max(samples))


@given(
    st.lists(st.tuples(st.floats(0, 8), values), min_size=1, max_size=40),
    st.integers(1, 20),
    st.integers(0, 25),
)
def test_old_samples_are_forgotten_but_for_a_few(
    samples: list[tuple[float, float]], window: int, least: int
) -> None:
    clock = ManualClock()
    recent = SlidingQuantile(window, 10.0, least, clock)
    came: list[tuple[float, float]] = []
    for pause, value in samples:
        clock.advance(pause)
        recent.add(value)
        came.append((clock(), value))
    last = came[-window:]
    fresh = [value for at, value in last if at >= clock() - 10.0]
    kept = [value for _, value in last][-max(len(fresh), least) :]
    assert recent.count() == len(kept)
    assert (recent.quantile(0), recent.quantile(1)) == (min(kept), max(kept))


def test_a_key_is_forgotten_some_seconds_after_it_was_seen_last() -> None:
    clock = ManualClock()
    seen = RecentKeys(2.0, 10, clock)
    for key in "aba":
        seen.add(key)
        clock.advance(0.75)
    assert set(seen.keys()) == {"a", "b"}
    clock.advance(0.5)
    assert set(seen.keys()) == {"a"}


def test_keys_are_counted_in_another_thread_while_keys_are_added_and_forgotten() -> None:
    """The page of metrics is rendered in a thread: it must not forget a key at the same time."""
    clock = ManualClock()
    seen = RecentKeys(2.0, 10, clock)
    seen.add("a")
    clock.advance(1.0)
    seen.add("b")
    clock.advance(1.0)
    kept = seen._last_seen.copy()
    assert (seen.count(), seen._last_seen) == (1, kept)
    assert seen.keys() == {"b"}


def test_of_too_many_keys_the_oldest_are_forgotten() -> None:
    seen = RecentKeys(2.0, 2, ManualClock())
    for key in "abac":
        seen.add(key)
    assert set(seen.keys()) == {"a", "c"}
