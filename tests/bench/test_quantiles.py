"""Quantiles with intervals that assume nothing about the distribution."""

import math
import random

import pytest

from bench.quantiles import Estimate, bounding_ranks, is_at_most, quantile, ratio


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high)


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [
        (20, 0.5, (6, 15)),  # as in tables of the sign test
        (100, 0.5, (40, 61)),
        (500, 0.99, (490, 500)),
        (1000, 0.99, (983, 997)),
        (367, 0.99, (359, 368)),  # too few to bound it from above
        (368, 0.99, (360, 368)),
    ],
)
def test_ranks_are_those_of_the_binomial_distribution(
    count: int, share: float, expected: tuple[int, int]
) -> None:
    assert bounding_ranks(count, share) == expected


def test_an_interval_holds_the_true_quantile_nearly_always() -> None:
    chance, held = random.Random(5), 0
    for _ in range(400):
        seen = quantile([chance.random() for _ in range(500)], 0.99)
        held += seen.low <= 0.99 <= seen.high
    assert held / 400 > 0.92


def test_few_values_do_not_bound_a_quantile_from_above() -> None:
    seen = quantile([1.0] * 50, 0.99)
    assert (seen.value, seen.high) == (1.0, math.inf)
    assert math.isnan(quantile([], 0.99).value)


def test_the_interval_of_a_ratio_follows_from_both_sides() -> None:
    sharp, wide = estimate(2.0, 2.0, 2.0), estimate(1.0, 0.5, 2.0)
    assert ratio(sharp, sharp) == estimate(1.0, 1.0, 1.0)
    half = ratio(sharp, wide)
    assert (half.value, half.low, half.high) == pytest.approx((2.0, 1.0, 4.0))
    both = ratio(wide, wide)
    assert both.high == pytest.approx(2 ** math.sqrt(2))
    assert both.low == pytest.approx(2 ** -math.sqrt(2))


def test_a_ratio_to_an_unknown_value_is_unbounded() -> None:
    assert ratio(estimate(1.0, 0.5, math.inf), estimate(1.0, 1.0, 1.0)).high == math.inf
    assert math.isnan(ratio(estimate(1.0, 1.0, 1.0), estimate(0.0, 0.0, 0.0)).value)


def test_within_is_judged_by_the_whole_interval() -> None:
    assert is_at_most(estimate(1.0, 0.9, 1.5), 1.5) is True
    assert is_at_most(estimate(1.0, 0.9, 1.6), 1.5) is None
    assert is_at_most(estimate(1.8, 1.6, 2.0), 1.5) is False
