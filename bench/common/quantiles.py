"""Quantiles of what was seen, and how far chance may have moved them. Pure.

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


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure, and where it lies with 95 % confidence."""

    value: float
    low: float
    high: float
    """Infinite if there were too few to say."""


def nearest_rank(spent: Sequence[float], share: float) -> float:
    """The quantile of sorted values, by nearest rank; NaN if there are none."""
    return spent[max(math.ceil(share * len(spent)), 1) - 1] if spent else math.nan


def quantile(values: Sequence[float], share: float) -> Estimate:
    """A quantile of values that are at least 0, with its interval; NaN if there are none."""
    spent = sorted(values)
    if not spent:
        return Estimate(math.nan, 0.0, math.inf)
    low, high = ranks(len(spent), share)
    return Estimate(
        nearest_rank(spent, share),
        spent[low - 1] if low else 0.0,
        spent[high - 1] if high <= len(spent) else math.inf,
    )


def ranks(count: int, share: float) -> tuple[int, int]:
    """Which of `count` sorted values bound a quantile, counted from 1.

    0 says that none bounds it from below, `count` + 1 that none bounds it from above.
    """
    below = list(itertools.accumulate(_binomial(count, share)))
    low = sum(chance <= _TAIL for chance in below)
    high = sum(chance < 1 - _TAIL for chance in below) + 1
    return low, high


def ratio(over: Estimate, under: Estimate) -> Estimate:
    """One figure divided by another, with the interval that follows from theirs.

    By the distances on a scale of logarithms, squared and added: MOVER (Zou and Donner, Statistics
    in Medicine 27, 2008). The two must have been seen apart.
    """
    if not (over.value > 0 and under.value > 0):
        return Estimate(math.nan, 0.0, math.inf)
    value = over.value / under.value
    down = math.hypot(_apart(over.value, over.low), _apart(under.high, under.value))
    up = math.hypot(_apart(over.high, over.value), _apart(under.value, under.low))
    return Estimate(value, value * math.exp(-down), value * math.exp(up))


def within(seen: Estimate, most: float) -> bool | None:
    """Whether a figure is at most so much; None if its interval lies on both sides of that."""
    if seen.high <= most:
        return True
    return False if seen.low > most else None


def _apart(more: float, less: float) -> float:
    """How far two values are apart on a scale of logarithms."""
    if math.isinf(more) or less <= 0:
        return math.inf
    return math.log(more / less)


def _binomial(count: int, share: float) -> Iterator[float]:
    """How likely it is that none, one, … all of `count` values are below a quantile."""
    for below in range(count + 1):
        ways = math.lgamma(count + 1) - math.lgamma(below + 1) - math.lgamma(count - below + 1)
        yield math.exp(ways + below * math.log(share) + (count - below) * math.log1p(-share))
