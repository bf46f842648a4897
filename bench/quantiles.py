"""Computes quantiles of measured values, and their confidence intervals.

The p99 of a few values is nearly their maximum, so each quantile has a confidence interval. The
interval assumes nothing about the distribution: the number of values below a quantile is binomial,
so two of the sorted values bound the quantile (David and Nagaraja, Order Statistics, section 7.1).
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TAIL_PROBABILITY = 0.025
"""Probability of each tail outside a 95 % confidence interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    """Upper bound of the interval; infinite if there are too few values to bound the quantile."""


def nearest_rank(values: Sequence[float], level: float) -> float:
    """Returns the quantile at `level` (0 to 1) by nearest rank; NaN without values."""
    ordered = sorted(values)
    return ordered[max(math.ceil(level * len(ordered)), 1) - 1] if ordered else math.nan


def quantile(values: Sequence[float], level: float) -> Estimate:
    """Returns a quantile of non-negative values with its interval; NaN without values."""
    ordered = sorted(values)
    if not ordered:
        return Estimate(value=math.nan, low=0.0, high=math.inf)
    low, high = bounding_ranks(len(ordered), level)
    return Estimate(
        value=nearest_rank(ordered, level),
        low=ordered[low - 1] if low else 0.0,
        high=ordered[high - 1] if high <= len(ordered) else math.inf,
    )


def bounding_ranks(count: int, level: float) -> tuple[int, int]:
    """Returns the ranks of the two values that bound a quantile of `count` sorted values.

    Ranks start at 1. Rank 0 means that no value is a lower bound, and rank `count` + 1 that no
    value is an upper bound.
    """
    cumulative = list(itertools.accumulate(_binomial_probabilities(count, level)))
    low = sum(chance <= _TAIL_PROBABILITY for chance in cumulative)
    high = sum(chance < 1 - _TAIL_PROBABILITY for chance in cumulative) + 1
    return low, high


def ratio(numerator: Estimate, denominator: Estimate) -> Estimate:
    """Divides one estimate by another estimate, which must be measured independently.

    The interval is computed by the MOVER method on a logarithmic scale (Zou and Donner, Statistics
    in Medicine 27, 2008).
    """
    if not (numerator.value > 0 and denominator.value > 0):
        return Estimate(value=math.nan, low=0.0, high=math.inf)
    value = numerator.value / denominator.value
    low_distance = math.hypot(
        _log_distance(numerator.value, numerator.low),
        _log_distance(denominator.high, denominator.value),
    )
    high_distance = math.hypot(
        _log_distance(numerator.high, numerator.value),
        _log_distance(denominator.value, denominator.low),
    )
    return Estimate(
        value=value, low=value * math.exp(-low_distance), high=value * math.exp(high_distance)
    )


def is_at_most(estimate: Estimate, limit: float) -> bool | None:
    """Returns whether a value is at most `limit`, or None if `limit` lies within its interval."""
    if estimate.high <= limit:
        return True
    return False if estimate.low > limit else None


def _log_distance(larger: float, smaller: float) -> float:
    """Returns the distance between two values on a logarithmic scale."""
    if math.isinf(larger) or smaller <= 0:
        return math.inf
    return math.log(larger / smaller)


def _binomial_probabilities(count: int, level: float) -> Iterator[float]:
    """Yields the probabilities that 0, 1, … of `count` values are below a quantile."""
    for k in range(count + 1):
        coefficient = math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
        yield math.exp(coefficient + k * math.log(level) + (count - k) * math.log1p(-level))
