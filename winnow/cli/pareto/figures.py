"""Figures of points from their outcomes, the Pareto front, and the point to choose. Pure."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from winnow.cli.asking import count_failures, mean
from winnow.cli.pareto.outcome import JudgedReply


@dataclass(frozen=True, slots=True, kw_only=True)
class PointFigures:
    """The figures of a point. Accuracy in percent, times in milliseconds."""

    point: str
    exact_match: float | None
    """Mean over the question files, each of equal weight; None for a point that is only timed."""
    by_file: Mapping[str, tuple[float, float]]
    """Exact match and F1 by question file."""
    p50: float
    p95: float
    """Infinite where more than 5 % of the questions failed."""
    mean: float
    """Mean of the answered questions."""
    read: float
    """Mean passages read; it counts those that were read ahead and not needed, too."""
    needed: float
    """Mean passages that answers rest on."""
    questions: int
    failed: int
    megabytes: float
    """Size of the bundle."""
    on_front: bool = False
    errors: Mapping[str, int] = field(default_factory=dict)
    """Failed questions by status."""
    said: Mapping[str, str] = field(default_factory=dict)
    """The first message of each status."""

    @property
    def comparable(self) -> bool:
        """Whether it has an accuracy, and at least half of its questions were answered."""
        return self.exact_match is not None and math.isfinite(self.p50)


def figures(
    outcomes: Iterable[JudgedReply], sizes: Mapping[str, float], timed_only: Collection[str] = ()
) -> list[PointFigures]:
    """The figures of every point, most accurate first; points on the front are marked.

    `sizes` are those of the points' bundles, in megabytes; `timed_only` points have no accuracy.
    """
    by_point: dict[str, list[JudgedReply]] = {}
    for outcome in outcomes:
        by_point.setdefault(outcome.point, []).append(outcome)
    found = [_figures(point, own, sizes[point]) for point, own in by_point.items()]
    found = [
        replace(each, exact_match=None, by_file={}) if each.point in timed_only else each
        for each in found
    ]
    best = front(found)
    marked = [replace(each, on_front=each.point in best) for each in found]
    return sorted(marked, key=lambda each: (-_accuracy(each), each.p50))


def front(found: Sequence[PointFigures]) -> set[str]:
    """The points that no other beats in both accuracy and median latency."""
    judged = [each for each in found if each.comparable]
    return {each.point for each in judged if not any(_dominates(other, each) for other in judged)}


def recommend(
    found: Sequence[PointFigures],
    max_p95: float | None = None,
    min_exact_match: float | None = None,
) -> PointFigures | None:
    """The most accurate point within a latency, or the fastest one with at least an accuracy.

    Given neither, the most accurate point. None if no point is allowed.
    """
    allowed = [
        each
        for each in found
        if each.comparable
        and (max_p95 is None or each.p95 <= max_p95)
        and (min_exact_match is None or _accuracy(each) >= min_exact_match)
    ]
    if min_exact_match is not None and max_p95 is None:
        return min(allowed, key=lambda each: each.p95, default=None)
    return max(allowed, key=lambda each: (_accuracy(each), -each.p95), default=None)


def _accuracy(each: PointFigures) -> float:
    return -1.0 if each.exact_match is None else each.exact_match


def _dominates(one: PointFigures, other: PointFigures) -> bool:
    no_worse = _accuracy(one) >= _accuracy(other) and one.p50 <= other.p50
    better = _accuracy(one) > _accuracy(other) or one.p50 < other.p50
    return no_worse and better


def _percentiles(times: Sequence[float]) -> tuple[float, float]:
    """The median and the 95th percentile. Failed calls have an infinite time: without them, a point
    would look faster the more of its questions time out.
    """
    # a quantile that is one of the times: interpolation would meet infinity
    p50, p95 = np.percentile(times, [50, 95], method="inverted_cdf").tolist()
    return p50, p95


def _figures(point: str, outcomes: Sequence[JudgedReply], size: float) -> PointFigures:
    by_file: dict[str, list[JudgedReply]] = {}
    for outcome in outcomes:
        by_file.setdefault(outcome.questions, []).append(outcome)
    judged = {
        name: (100 * mean([o.exact_match for o in own]), 100 * mean([o.f1 for o in own]))
        for name, own in sorted(by_file.items())
    }
    times = [o.milliseconds for o in outcomes if not o.failed]
    p50, p95 = _percentiles([math.inf if o.failed else o.milliseconds for o in outcomes])
    why = count_failures(o.error for o in outcomes if o.failed)
    return PointFigures(
        point=point,
        exact_match=mean([exact for exact, _ in judged.values()]),
        by_file=judged,
        p50=p50,
        p95=p95,
        mean=mean(times) if times else math.inf,
        read=mean([o.read for o in outcomes]),
        needed=mean([o.read if o.needed is None else o.needed for o in outcomes]),
        questions=len(outcomes),
        failed=sum(o.failed for o in outcomes),
        megabytes=size,
        errors=why.errors,
        said=why.messages,
    )
