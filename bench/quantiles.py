"""Quantiles of measured values, and their confidence intervals. Pure.

A p99 of few answers is nearly their maximum. So each quantile has an interval that needs no
assumption about the distribution: the number of answers below a quantile is binomial, hence two of
the answers themselves bound it (David and Nagaraja, Order Statistics, section 7.1).
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TAIL = 0.025
"""On each side: intervals hold the quantile 95 times in 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    """Infinite if there were too few values to bound it."""


def nearest_rank(values: Sequence[float], share: float) -> float:
    """Returns a quantile by nearest rank; NaN without values."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else math.nan


def quantile(values: Sequence[float], share: float) -> Estimate:
    """Returns a quantile of values that are at least 0, with its interval; NaN without values."""
    ordered = sorted(values)
    if not ordered:
        return Estimate(value=math.nan, low=0.0, high=math.inf)
    low, high = ranks(len(ordered), share)
    return Estimate(
        value=nearest_rank(ordered, share),
        low=ordered[low - 1] if low else 0.0,
        high=ordered[high - 1] if high <= len(ordered) else math.inf,
    )


def ranks(count: int, share: float) -> tuple[int, int]:
    """Returns which of `count` sorted values bound a quantile, counted from 1.

    Rank 0 means that no value bounds it from below, `count` + 1 that none bounds it from above.
    """
    below = list(itertools.accumulate(_binomial(count, share)))
    low = sum(chance <= _TAIL for chance in below)
    high = sum(chance < 1 - _TAIL for chance in below) + 1
    return low, high


def ratio(over: Estimate, under: Estimate) -> Estimate:
    """Divides one estimate by another that was measured independently.

    The interval follows from both by MOVER on a logarithmic scale (Zou and Donner, Statistics in
    Medicine 27, 2008).
    """
    if not (over.value > 0 and under.value > 0):
        return Estimate(value=math.nan, low=0.0, high=math.inf)
    value = over.value / under.value
    down = math.hypot(_distance(over.value, over.low), _distance(under.high, under.value))
    up = math.hypot(_distance(over.high, over.value), _distance(under.value, under.low))
    return Estimate(value=value, low=value * math.exp(-down), high=value * math.exp(up))


def within(estimate: Estimate, most: float) -> bool | None:
    """Whether a value is at most `most`; None if its interval lies on both sides of that."""
    if estimate.high <= most:
        return True
    return False if estimate.low > most else None


def _distance(more: float, less: float) -> float:
    """Distance of two values on a logarithmic scale."""
    if math.isinf(more) or less <= 0:
        return math.inf
    return math.log(more / less)


def _binomial(count: int, share: float) -> Iterator[float]:
    """Yields the probabilities that 0, 1, … of `count` values are below a quantile."""
    for below in range(count + 1):
        ways = math.lgamma(count + 1) - math.lgamma(below + 1) - math.lgamma(count - below + 1)
        yield math.exp(ways + below * math.log(share) + (count - below) * math.log1p(-share))
