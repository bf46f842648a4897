"""Quantiles with intervals that assume nothing of how answers are spread."""

import math
import random

import pytest

from bench.common.quantiles import Estimate, quantile, ranks, ratio, within


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [
        (20, 0.5, (6, 15)),  # as in tables of the sign test
        (100, 0.5, (40, 61)),
        (500, 0.99, (490, 500)),
        (1000, 0.99, (983, 997)),
        (367, 0.99, (359, 368)),  # too few: nothing bounds it from above
        (368, 0.99, (360, 368)),
    ],
)
def test_ranks_are_those_of_the_binomial_distribution(
    count: int, share: float, expected: tuple[int, int]
) -> None:
    assert ranks(count, share) == expected


def test_an_interval_holds_the_true_quantile_nearly_always() -> None:
    chance, held = random.Random(5), 0
    for _ in range(400):
        seen = quantile([chance.random() for _ in range(500)], 0.99)
        held += seen.low <= 0.99 <= seen.high
    assert held / 400 > 0.92


def test_few_values_leave_a_quantile_open_above() -> None:
    seen = quantile([1.0] * 50, 0.99)
    assert (seen.value, seen.high) == (1.0, math.inf)
    assert math.isnan(quantile([], 0.99).value)


def test_a_ratio_is_as_far_off_as_both_its_sides() -> None:
    sharp, wide = Estimate(2.0, 2.0, 2.0), Estimate(1.0, 0.5, 2.0)
    assert ratio(sharp, sharp) == Estimate(1.0, 1.0, 1.0)
    half = ratio(sharp, wide)
    assert (half.value, half.low, half.high) == pytest.approx((2.0, 1.0, 4.0))
    both = ratio(wide, wide)
    assert both.high == pytest.approx(2 ** math.sqrt(2))
    assert both.low == pytest.approx(2 ** -math.sqrt(2))


def test_a_ratio_to_nothing_known_may_be_anything() -> None:
    assert ratio(Estimate(1.0, 0.5, math.inf), Estimate(1.0, 1.0, 1.0)).high == math.inf
    assert math.isnan(ratio(Estimate(1.0, 1.0, 1.0), Estimate(0.0, 0.0, 0.0)).value)


def test_within_is_told_by_the_whole_interval() -> None:
    assert within(Estimate(1.0, 0.9, 1.5), 1.5) is True
    assert within(Estimate(1.0, 0.9, 1.6), 1.5) is None
    assert within(Estimate(1.8, 1.6, 2.0), 1.5) is False
