"""The promises of scenarios: each judges what was measured. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.quantiles import Estimate, quantile, ratio, within
from bench.scenarios.rows import (
    HEALTH,
    OK,
    REFUSED,
    Observed,
    availability,
    coverage,
    latency,
    seconds,
)

LEAST_ANSWERS = 500
"""Fewest answers that a p99 is judged by."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a promise is kept."""

    holds: bool | None
    """None if the measurements do not tell."""
    summary: str


Criterion = Callable[[Observed], Finding]


def exit_code(findings: Iterable[Finding]) -> int:
    """Returns 0 if all promises are kept, 1 if one is broken, else 3: one cannot be judged."""
    holds = [finding.holds for finding in findings]
    return 1 if False in holds else 3 if None in holds else 0


def all_in_time(phase: str, deadline: float) -> Criterion:
    """Every question was answered before its deadline."""

    def judge(seen: Observed) -> Finding:
        rows = seen.phases[phase]
        longest = latency(rows, 1.0)
        holds = availability(rows) == 1.0 and longest <= deadline
        return Finding(
            holds, f"{availability(rows):.2%} of {len(rows)} answered, longest {longest:.2f} s"
        )

    return judge


def partial_answers(phase: str, within: float = 0.01) -> Criterion:
    """Answers cover the shards that are left (the mark `left`), and give a reason for the rest."""

    def judge(seen: Observed) -> Finding:
        rows, left = [row for row in seen.phases[phase] if row.status == OK], seen.marks["left"]
        near = bool(rows) and abs(coverage(rows) - left) <= within
        reasons = all(row.explained for row in rows)
        summary = f"coverage {coverage(rows):.3f}, {left:.3f} is left"
        return Finding(near and reasons, summary + ("" if reasons else ", a reason is missing"))

    return judge


def complete_again(phase: str, within: float = 2.0) -> Criterion:
    """Answers are complete from `within` seconds after the shard's return (mark `returned`)."""

    def judge(seen: Observed) -> Finding:
        returned = seen.marks["returned"]
        rows = [row for row in seen.phases[phase] if row.at >= returned]
        took = max((row.at - returned for row in rows if not row.whole), default=0.0)
        late = any(row.at >= returned + within for row in rows)
        return Finding(late and took < within, f"complete {took:.1f} s after its return")

    return judge


def all_complete(phase: str, least: int = 1) -> Criterion:
    """Every question was answered from the whole index; there were at least `least`."""

    def judge(seen: Observed) -> Finding:
        rows = seen.phases[phase]
        lost = Counter("partial" if r.status == OK else r.status for r in rows if not r.whole)
        summary = f"{len(rows)} of at least {least}: {_counted(lost) or 'none lost'}"
        return Finding(not lost and len(rows) >= least, summary)

    return judge


def none_failed(phase: str, least: int) -> Criterion:
    """Every question was answered; there were at least `least`."""

    def judge(seen: Observed) -> Finding:
        rows = seen.phases[phase]
        errors = Counter(row.status for row in rows if row.status != OK)
        summary = f"{len(rows)} of {least}: {_counted(errors) or 'none failed'}"
        if partly := [row.reason for row in rows if row.status == OK and not row.complete]:
            summary += f", {len(partly)} answered in part ({partly[0]})"
        return Finding(not errors and len(rows) >= least, summary)

    return judge


def p99_within(
    factor: float, phase: str, healthy: str = "healthy", least: int = LEAST_ANSWERS
) -> Criterion:
    """The p99 is at most `factor` times that of the phase `healthy`.

    It cannot be judged by fewer than `least` answers, or if the interval of the ratio lies on both
    sides of `factor`. A phase without any answer breaks the promise.
    """

    def judge(seen: Observed) -> Finding:
        before, after = (seconds(seen.phases[name]) for name in (healthy, phase))
        if not (before and after):
            return Finding(False, f"{len(after)} answers beside {len(before)} healthy ones")
        sides = quantile(after, 0.99), quantile(before, 0.99)
        grown = ratio(*sides)
        enough = min(len(before), len(after)) >= least
        summary = (
            f"p99 {grown.value:.2f} ({grown.low:.2f} to {grown.high:.2f}) times the healthy one, "
            f"at most {factor:g}: {_milliseconds(sides[0])} of {len(after)} answers beside "
            f"{_milliseconds(sides[1])} of {len(before)}"
        )
        if not enough:
            return Finding(None, f"{summary}, too few: {least} each are judged")
        return Finding(within(grown, factor), summary)

    return judge


def mark_within(name: str, most: float, unit: str = "") -> Criterion:
    """A mark is at most `most`."""

    def judge(seen: Observed) -> Finding:
        value = seen.marks[name]
        return Finding(value <= most, f"{name} {_plain(value)}{unit}, at most {_plain(most)}{unit}")

    return judge


def mark_within_mark(name: str, most: str, unit: str = "") -> Criterion:
    """A mark is at most the mark `most`."""
    return lambda seen: mark_within(name, seen.marks[most], unit)(seen)


def goodput(phase: str, share: float) -> Criterion:
    """Complete answers a second reach this share of the most that is possible (mark `peak`)."""

    def judge(seen: Observed) -> Finding:
        rows, peak = seen.phases[phase], seen.marks["peak"]
        reached = sum(row.whole for row in rows) / seen.marks[f"{phase} seconds"]
        return Finding(reached >= share * peak, f"{reached:.1f}/s, {reached / peak:.0%} of peak")

    return judge


def refused_within(phase: str, limit: float) -> Criterion:
    """Every question that is not answered is refused, and the p99 of refusals is within `limit`.

    The summary adds how long health checks took in that phase: any call takes that long.
    """

    def judge(seen: Observed) -> Finding:
        rows = seen.phases[phase]
        other = Counter(row.status for row in rows if row.status not in (OK, REFUSED))
        half, took = (latency(rows, share, REFUSED) for share in (0.5, 0.99))
        count = len(seconds(rows, REFUSED))
        summary = f"p99 of {count} refusals {took * 1e3:.1f} ms, median {half * 1e3:.1f} ms"
        summary += "".join(f", {count} {status}" for status, count in sorted(other.items()))
        if checks := seen.phases.get(HEALTH):
            half, least = (latency(checks, share) * 1e3 for share in (0.5, 0.99))
            summary += f" (health checks meanwhile {least:.1f} ms, median {half:.1f} ms)"
        return Finding(not other and took <= limit, summary)

    return judge


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def _milliseconds(seen: Estimate) -> str:
    return f"{seen.value * 1e3:.0f} ms ({seen.low * 1e3:.0f} to {seen.high * 1e3:.0f})"
