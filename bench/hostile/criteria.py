"""Criteria for attacks and shutdown: functions that judge whether measurements keep a promise."""

from collections import Counter
from collections.abc import Mapping

from bench.scenarios.criteria import Finding, criterion
from bench.scenarios.measurements import Measurements

OUTCOME = "outcome "
"""Name prefix of a value that counts an outcome of an attack."""
CHANGED = "changed: "
"""Name prefix of a value for a question whose answer changed during an attack."""
LABEL = "label "
"""Name prefix of a value for a metric label that may come from client input."""


@criterion
def allowed_outcomes(measurements: Measurements, *allowed: str, min_count: int = 1) -> Finding:
    """The attack had only allowed outcomes, and at least `min_count` outcomes in total."""
    counts = _without_prefix(measurements.values, OUTCOME)
    forbidden = set(counts) - set(allowed)
    summary = ", ".join(f"{count:.0f} {name}" for name, count in sorted(counts.items()))
    summary = summary or "no outcome"
    if forbidden:
        return Finding(False, f"{summary}: {', '.join(sorted(forbidden))} is not allowed")
    if sum(counts.values()) < min_count:  # an early end or a slow machine breaks no promise
        return Finding(None, f"{summary}: too few outcomes, {min_count} are needed")
    return Finding(True, summary)


@criterion
def no_value_named(measurements: Measurements, prefix: str, description: str) -> Finding:
    """No measured value has a name with this prefix; `description` describes such values."""
    names = sorted(_without_prefix(measurements.values, prefix))
    return Finding(not names, f"{description}: {', '.join(names) or 'none'}")


@criterion
def shuts_down_in_time(measurements: Measurements, process: str, extra_seconds: float) -> Finding:
    """Under attack, a process takes at most `extra_seconds` longer to end after SIGTERM."""
    quiet = measurements.values[f"{process}, seconds when quiet"]
    attacked = measurements.values[f"{process}, seconds while attacked"]
    summary = f"{process} ended in {attacked:.1f} s under attack, {quiet:.1f} s without an attack"
    return Finding(attacked <= quiet + extra_seconds, summary)


def outcome_values(outcomes: Counter[str]) -> dict[str, float]:
    """Returns the outcome counts of an attack as measured values."""
    return {OUTCOME + name: float(count) for name, count in outcomes.items()}


def _without_prefix(values: Mapping[str, float], prefix: str) -> dict[str, float]:
    return {name[len(prefix) :]: value for name, value in values.items() if name.startswith(prefix)}
