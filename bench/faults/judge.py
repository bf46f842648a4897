"""Whether what was seen is what must hold. Pure: rows and marks in, findings out."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.common.quantiles import Estimate, nearest_rank, quantile, ratio, within
from bench.faults.rows import HEALTH, OK, REFUSED, Row, whole

LEAST_ANSWERS = 500
"""Of which a p99 is judged."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen while a scenario ran."""

    phases: Mapping[str, Sequence[Row]]
    """The questions that ended in each phase."""
    marks: Mapping[str, float] = field(default_factory=dict)
    """What else was measured, by name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that must hold, and whether it did."""

    holds: bool | None
    """None if what was seen does not tell."""
    said: str


Criterion = Callable[[Observed], Finding]


def exit_code(findings: Iterable[Finding]) -> int:
    """0 if everything holds, 1 if something does not, 3 if that cannot be told of something."""
    held = [finding.holds for finding in findings]
    return 1 if False in held else 3 if None in held else 0


def availability(rows: Sequence[Row]) -> float:
    """Share of the questions that got an answer, whatever it covers."""
    return sum(row.status == OK for row in rows) / len(rows) if rows else 0.0


def completeness(rows: Sequence[Row]) -> float:
    """Share of the questions that got an answer from all of the index."""
    return sum(map(whole, rows)) / len(rows) if rows else 0.0


def coverage(rows: Sequence[Row]) -> float:
    """Mean coverage of the answers; 0 without any."""
    covered = [row.coverage for row in rows if row.status == OK]
    return sum(covered) / len(covered) if covered else 0.0


def latency(rows: Sequence[Row], share: float, status: str = OK) -> float:
    """The quantile of the seconds that those with `status` took, by nearest rank; NaN if none."""
    return nearest_rank(sorted(seconds(rows, status)), share)


def seconds(rows: Sequence[Row], status: str = OK) -> list[float]:
    """What those with `status` took."""
    return [row.seconds for row in rows if row.status == status]


def all_in_time(phase: str, deadline: float) -> Criterion:
    """Every question got an answer before its deadline."""

    def judge(seen: Observed) -> Finding:
        rows = seen.phases[phase]
        longest = latency(rows, 1.0)
        holds = availability(rows) == 1.0 and longest <= deadline
        return Finding(
            holds, f"{availability(rows):.2%} of {len(rows)} answered, longest {longest:.2f} s"
        )

    return judge


def partial_answers(phase: str, within: float = 0.01) -> Criterion:
    """Answers cover what is left (the mark `left`) and say why not more."""

    def judge(seen: Observed) -> Finding:
        rows, left = [row for row in seen.phases[phase] if row.status == OK], seen.marks["left"]
        near = bool(rows) and abs(coverage(rows) - left) <= within
        reasons = all(row.explained for row in rows)
        said = f"coverage {coverage(rows):.3f}, {left:.3f} is left"
        return Finding(near and reasons, said + ("" if reasons else ", a reason is missing"))

    return judge


def complete_again(phase: str, within: float = 2.0) -> Criterion:
    """From `within` seconds after the shard's return (the mark `returned`) answers are complete."""

    def judge(seen: Observed) -> Finding:
        rows = [row for row in seen.phases[phase] if row.at >= seen.marks["returned"]]
        partly = [row.at - seen.marks["returned"] for row in rows if not whole(row)]
        took = max(partly, default=0.0)
        late = any(row.at >= seen.marks["returned"] + within for row in rows)
        return Finding(late and took < within, f"complete {took:.1f} s after its return")

    return judge


def all_complete(phase: str, least: int = 1) -> Criterion:
    """Of at least so many questions, every one got an answer from all of the index."""

    def judge(seen: Observed) -> Finding:
        rows = seen.phases[phase]
        lost = Counter("partial" if r.status == OK else r.status for r in rows if not whole(r))
        said = ", ".join(f"{count} {why}" for why, count in sorted(lost.items())) or "none lost"
        return Finding(not lost and len(rows) >= least, f"{len(rows)} of at least {least}: {said}")

    return judge


def none_failed(phase: str, least: int) -> Criterion:
    """Of at least so many questions, every one got an answer."""

    def judge(seen: Observed) -> Finding:
        rows = seen.phases[phase]
        failed = Counter(row.status for row in rows if row.status != OK)
        said = ", ".join(f"{count} {why}" for why, count in sorted(failed.items())) or "none failed"
        if partly := [row.why for row in rows if row.status == OK and not row.complete]:
            said += f", {len(partly)} answered in part ({partly[0]})"
        return Finding(not failed and len(rows) >= least, f"{len(rows)} of {least}: {said}")

    return judge


def p99_within(
    factor: float, phase: str, healthy: str = "healthy", least: int = LEAST_ANSWERS
) -> Criterion:
    """The p99 is at most so many times the healthy one.

    Cannot be told from fewer than `least` answers, or if the interval of the ratio lies on both
    sides of `factor`. Nothing is told of a phase without any answer but that it is broken.
    """

    def judge(seen: Observed) -> Finding:
        before, after = (seconds(seen.phases[name]) for name in (healthy, phase))
        if not (before and after):
            return Finding(False, f"{len(after)} answers beside {len(before)} healthy ones")
        sides = quantile(after, 0.99), quantile(before, 0.99)
        grown = ratio(*sides)
        enough = min(len(before), len(after)) >= least
        holds = within(grown, factor) if enough else None
        said = f"p99 {_shown(grown)} times the healthy one, at most {factor:g}: "
        said += f"{_milliseconds(sides[0])} of {len(after)} answers"
        said += f" beside {_milliseconds(sides[1])} of {len(before)}"
        return Finding(holds, said + ("" if enough else f", too few: {least} each are judged"))

    return judge


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def _shown(seen: Estimate) -> str:
    return f"{seen.value:.2f} ({seen.low:.2f} to {seen.high:.2f})"


def _milliseconds(seen: Estimate) -> str:
    return f"{seen.value * 1e3:.0f} ms ({seen.low * 1e3:.0f} to {seen.high * 1e3:.0f})"


def mark_within(name: str, most: float, unit: str = "") -> Criterion:
    """A mark is at most so much."""

    def judge(seen: Observed) -> Finding:
        value = seen.marks[name]
        said = f"{name} {_plain(value)}{unit}, at most {_plain(most)}{unit}"
        return Finding(value <= most, said)

    return judge


def mark_within_mark(name: str, most: str, unit: str = "") -> Criterion:
    """A mark is at most another one."""

    def judge(seen: Observed) -> Finding:
        return mark_within(name, seen.marks[most], unit)(seen)

    return judge


def goodput(phase: str, share: float) -> Criterion:
    """Complete answers per second, of what can be answered at most (the mark `peak`)."""

    def judge(seen: Observed) -> Finding:
        rows, peak = seen.phases[phase], seen.marks["peak"]
        reached = sum(map(whole, rows)) / seen.marks[f"{phase} seconds"]
        return Finding(reached >= share * peak, f"{reached:.1f}/s, {reached / peak:.0%} of peak")

    return judge


def refused_within(phase: str, seconds: float) -> Criterion:
    """Whoever is not answered is refused, and nearly all of them at once: the p99 counts.

    Says how long health checks took meanwhile, which is what the machine takes for any call.
    """

    def judge(seen: Observed) -> Finding:
        rows = seen.phases[phase]
        other = Counter(row.status for row in rows if row.status not in (OK, REFUSED))
        half, took = (latency(rows, share, REFUSED) for share in (0.5, 0.99))
        count = sum(row.status == REFUSED for row in rows)
        said = f"p99 of {count} refusals {took * 1e3:.1f} ms, median {half * 1e3:.1f} ms"
        said += "".join(f", {count} {why}" for why, count in sorted(other.items()))
        if checks := seen.phases.get(HEALTH):
            half, least = (latency(checks, share) for share in (0.5, 0.99))
            said += f" (health checks meanwhile {least * 1e3:.1f} ms, median {half * 1e3:.1f} ms)"
        return Finding(not other and took <= seconds, said)

    return judge
