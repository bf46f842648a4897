"""Computes the figures of operating points, the Pareto front and the recommended point. Pure."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from winnow.cli.asking import count_failures, mean
from winnow.cli.pareto.outcome import JudgedReply


@dataclass(frozen=True, slots=True, kw_only=True)
class PointFigures:
    """The figures of an operating point. Accuracy is in percent, times are in milliseconds."""

    point: str
    exact_match: float | None
    """Mean over the question files, with equal weights; None for a point that is only timed."""
    by_file: Mapping[str, tuple[float, float]]
    """Exact match and F1 by question file."""
    p50: float
    p95: float
    """Infinite if more than 5 % of the questions failed."""
    mean: float
    """Mean time of the answered questions."""
    read: float
    """Mean number of passages read, including speculative reads."""
    needed: float
    """Mean number of passages that had to be read for the answers."""
    questions: int
    failed: int
    megabytes: float
    """Size of the bundle, in MB."""
    on_front: bool = False
    """Whether the point is on the Pareto front."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Failed questions by status."""
    said: Mapping[str, str] = field(default_factory=dict)
    """The first error message with each status."""

    @property
    def comparable(self) -> bool:
        """Whether the point's accuracy was measured, and it answered at least half of its
        questions.
        """
        return self.exact_match is not None and math.isfinite(self.p50)


def compute_point_figures(
    outcomes: Iterable[JudgedReply], sizes: Mapping[str, float], timed_only: Collection[str] = ()
) -> list[PointFigures]:
    """Computes the figures of every point, sorted by accuracy, and marks the Pareto front.

    Args:
        outcomes: the replies of all points.
        sizes: size of each point's bundle, in megabytes.
        timed_only: names of points whose accuracy is unknown.

    """
    by_point: dict[str, list[JudgedReply]] = {}
    for outcome in outcomes:
        by_point.setdefault(outcome.point, []).append(outcome)
    points = [_figures(point, own, sizes[point]) for point, own in by_point.items()]
    points = [
        replace(each, exact_match=None, by_file={}) if each.point in timed_only else each
        for each in points
    ]
    best = pareto_front(points)
    marked = [replace(each, on_front=each.point in best) for each in points]
    return sorted(marked, key=lambda each: (-_accuracy(each), each.p50))


def pareto_front(points: Sequence[PointFigures]) -> set[str]:
    """The names of the points on the Pareto front of accuracy and median latency."""
    judged = [each for each in points if each.comparable]
    return {each.point for each in judged if not any(_dominates(other, each) for other in judged)}


def recommend(
    points: Sequence[PointFigures],
    max_p95: float | None = None,
    min_exact_match: float | None = None,
) -> PointFigures | None:
    """The most accurate point within a latency, or the fastest one with a minimum accuracy.

    Without limits, the most accurate point. None if no point is within the limits.
    """
    allowed = [
        each
        for each in points
        if each.comparable
        and (max_p95 is None or each.p95 <= max_p95)
        and (min_exact_match is None or _accuracy(each) >= min_exact_match)
    ]
    if min_exact_match is not None and max_p95 is None:
        return min(allowed, key=lambda each: each.p95, default=None)
    return max(allowed, key=lambda each: (_accuracy(each), -each.p95), default=None)


def _accuracy(each: PointFigures) -> float:
    return -1.0 if each.exact_match is None else each.exact_match


def _dominates(first: PointFigures, second: PointFigures) -> bool:
    no_worse = _accuracy(first) >= _accuracy(second) and first.p50 <= second.p50
    better = _accuracy(first) > _accuracy(second) or first.p50 < second.p50
    return no_worse and better


def _percentiles(times: Sequence[float]) -> tuple[float, float]:
    """The median and the 95th percentile. Failed calls count as infinite times.

    If failed calls were left out, a point would look faster the more of its questions time out.
    """
    # no interpolation, which would be undefined between a time and infinity
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
    failures = count_failures(o.error for o in outcomes if o.failed)
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
        errors=failures.errors,
        said=failures.messages,
    )
