"""Criteria of scenarios: functions that judge whether measurements keep a promise."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec

from bench.quantiles import Estimate, is_at_most, quantile, ratio
from bench.scenarios.measurements import (
    HEALTH,
    OK,
    REFUSED,
    Measurements,
    availability,
    latencies,
    latency_quantile,
    mean_coverage,
)

MIN_ANSWERS = 500
"""Minimum number of answers to judge a p99."""
_COVERAGE_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one promise."""

    holds: bool | None
    """True if the promise was kept, False if it was broken, None if the result is inconclusive."""
    summary: str
    """The measured values and their bounds, in words."""


Criterion = Callable[[Measurements], Finding]
"""Judges whether measurements keep one promise."""
Parameters = ParamSpec("Parameters")


def criterion(
    judge: Callable[Concatenate[Measurements, Parameters], Finding],
) -> Callable[Parameters, Criterion]:
    """Turns a function that judges measurements into a factory of criteria.

    The factory takes the parameters after `measurements`: `all_complete("back")` returns a
    criterion.
    """

    @wraps(judge)
    def factory(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Criterion:
        return lambda measurements: judge(measurements, *args, **kwargs)

    return factory


def exit_code(findings: Iterable[Finding]) -> int:
    """Returns 1 if a promise was broken, else 3 if one is inconclusive, else 0."""
    holds = [finding.holds for finding in findings]
    return 1 if False in holds else 3 if None in holds else 0


@criterion
def all_answered_by(measurements: Measurements, phase: str, deadline: float) -> Finding:
    """Every question was answered within `deadline` seconds."""
    outcomes = measurements.phases[phase]
    longest = latency_quantile(outcomes, 1.0)
    holds = availability(outcomes) == 1.0 and longest <= deadline
    return Finding(
        holds, f"{availability(outcomes):.2%} of {len(outcomes)} answered, longest {longest:.2f} s"
    )


@criterion
def partial_answers(measurements: Measurements, phase: str) -> Finding:
    """Answers cover all remaining shards (value `left`), and give a reason for each lost shard."""
    outcomes = [outcome for outcome in measurements.phases[phase] if outcome.status == OK]
    left = measurements.values["left"]
    near = bool(outcomes) and abs(mean_coverage(outcomes) - left) <= _COVERAGE_TOLERANCE
    reasons = all(outcome.has_reasons for outcome in outcomes)
    summary = f"coverage {mean_coverage(outcomes):.3f} of {left:.3f} available"
    return Finding(near and reasons, summary + ("" if reasons else ", a reason is missing"))


@criterion
def complete_after_return(measurements: Measurements, phase: str, seconds: float = 2.0) -> Finding:
    """Answers are complete from `seconds` after the shard's return (value `returned`)."""
    returned = measurements.values["returned"]
    outcomes = [outcome for outcome in measurements.phases[phase] if outcome.due >= returned]
    took = max(
        (outcome.due - returned for outcome in outcomes if not outcome.complete), default=0.0
    )
    has_later_outcomes = any(outcome.due >= returned + seconds for outcome in outcomes)
    summary = f"complete {took:.1f} s after the shard's return"
    return Finding(has_later_outcomes and took < seconds, summary)


@criterion
def all_complete(measurements: Measurements, phase: str, min_questions: int = 1) -> Finding:
    """At least `min_questions` questions were asked, and all were answered from the whole index."""
    outcomes = measurements.phases[phase]
    lost = Counter("partial" if r.status == OK else r.status for r in outcomes if not r.complete)
    summary = f"{len(outcomes)} of at least {min_questions} questions: "
    summary += _format_counts(lost) or "all complete"
    return Finding(not lost and len(outcomes) >= min_questions, summary)


@criterion
def none_failed(measurements: Measurements, phase: str, min_questions: int) -> Finding:
    """At least `min_questions` questions were asked, and all were answered."""
    outcomes = measurements.phases[phase]
    errors = Counter(outcome.status for outcome in outcomes if outcome.status != OK)
    summary = f"{len(outcomes)} of {min_questions}: {_format_counts(errors) or 'none failed'}"
    if partly := [
        outcome.reason for outcome in outcomes if outcome.status == OK and not outcome.complete
    ]:
        summary += f", {len(partly)} answered in part ({partly[0]})"
    return Finding(not errors and len(outcomes) >= min_questions, summary)


@criterion
def p99_within(
    measurements: Measurements, factor: float, phase: str, baseline: str = "healthy"
) -> Finding:
    """The p99 of a phase is at most `factor` times the p99 of the phase `baseline`.

    The finding is inconclusive with fewer than `MIN_ANSWERS` answers, or if `factor` lies within
    the confidence interval of the ratio. A phase without any answer breaks the promise.
    """
    before, after = (latencies(measurements.phases[name]) for name in (baseline, phase))
    if not (before and after):
        return Finding(False, f"{len(after)} answers, {len(before)} in the phase {baseline!r}")
    p99, baseline_p99 = quantile(after, 0.99), quantile(before, 0.99)
    growth = ratio(p99, baseline_p99)
    summary = (
        f"p99 {growth.value:.2f} ({growth.low:.2f} to {growth.high:.2f}) times the {baseline} "
        f"p99, at most {factor:g}: {_format_interval(p99)} of {len(after)} answers, "
        f"{_format_interval(baseline_p99)} of {len(before)}"
    )
    if min(len(before), len(after)) < MIN_ANSWERS:
        return Finding(None, f"{summary}, too few answers: {MIN_ANSWERS} per phase are needed")
    return Finding(is_at_most(growth, factor), summary)


@criterion
def value_at_most(measurements: Measurements, name: str, limit: float, unit: str = "") -> Finding:
    """The measured value `name` is at most `limit`."""
    value = measurements.values[name]
    summary = f"{name} {_format_number(value)}{unit}, at most {_format_number(limit)}{unit}"
    return Finding(value <= limit, summary)


@criterion
def value_at_most_value(
    measurements: Measurements, name: str, limit_name: str, unit: str = ""
) -> Finding:
    """The measured value `name` is at most the measured value `limit_name`."""
    return value_at_most(name, measurements.values[limit_name], unit)(measurements)


@criterion
def min_goodput(measurements: Measurements, phase: str, share: float) -> Finding:
    """Complete answers per second are at least `share` of the peak rate (value `peak`)."""
    outcomes, peak = measurements.phases[phase], measurements.values["peak"]
    reached = (
        sum(outcome.complete for outcome in outcomes) / measurements.values[f"{phase} seconds"]
    )
    return Finding(reached >= share * peak, f"{reached:.1f}/s, {reached / peak:.0%} of peak")


@criterion
def refused_within(measurements: Measurements, phase: str, limit: float) -> Finding:
    """Every unanswered question is refused, and the p99 of refusals is at most `limit` seconds.

    The summary adds the latency of health checks, which are the cheapest calls, for comparison.
    """
    outcomes = measurements.phases[phase]
    other = Counter(outcome.status for outcome in outcomes if outcome.status not in (OK, REFUSED))
    p50, p99 = (latency_quantile(outcomes, level, REFUSED) for level in (0.5, 0.99))
    count = len(latencies(outcomes, REFUSED))
    summary = f"p99 of {count} refusals {p99 * 1e3:.1f} ms, median {p50 * 1e3:.1f} ms"
    summary += "".join(f", {count} {status}" for status, count in sorted(other.items()))
    if checks := measurements.phases.get(HEALTH):
        check_p50, check_p99 = (latency_quantile(checks, level) * 1e3 for level in (0.5, 0.99))
        summary += f" (health checks: p99 {check_p99:.1f} ms, median {check_p50:.1f} ms)"
    return Finding(not other and p99 <= limit, summary)


def _format_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def _format_interval(seconds: Estimate) -> str:
    return f"{seconds.value * 1e3:.0f} ms ({seconds.low * 1e3:.0f} to {seconds.high * 1e3:.0f})"
