"""The promises of attacks, beyond those of `bench.scenarios.criteria`. Pure."""

from collections import Counter
from collections.abc import Mapping

from bench.scenarios.criteria import Criterion, Finding
from bench.scenarios.rows import Observed

OUTCOME = "outcome "
"""Prefix of a mark that counts an outcome of an attack."""
CHANGED = "changed: "
"""Prefix of the mark of a question whose answer differs after an attack."""
LABEL = "label "
"""Prefix of the mark of a label that may be made of what a client sent."""


def outcomes(*allowed: str, least: int = 1) -> Criterion:
    """The attack had only the allowed outcomes, and at least `least`."""

    def judge(seen: Observed) -> Finding:
        counts = _without_prefix(seen.marks, OUTCOME)
        wrong = set(counts) - set(allowed)
        summary = ", ".join(f"{count:.0f} {name}" for name, count in sorted(counts.items()))
        summary = summary or "no outcome"
        if wrong:
            return Finding(False, f"{summary}: {', '.join(sorted(wrong))} is not allowed")
        if sum(counts.values()) < least:  # an early end or a slow machine is no server's fault
            return Finding(None, f"{summary}: too few, {least} are judged")
        return Finding(True, summary)

    return judge


def none_named(prefix: str, what: str) -> Criterion:
    """No mark has this prefix; `what` says what such a mark means."""

    def judge(seen: Observed) -> Finding:
        found = sorted(_without_prefix(seen.marks, prefix))
        return Finding(not found, f"{what}: {', '.join(found) or 'none'}")

    return judge


def takes_no_longer(process: str, more: float) -> Criterion:
    """A process ends at most `more` seconds later while it is attacked."""

    def judge(seen: Observed) -> Finding:
        quiet = seen.marks[f"{process}, seconds when quiet"]
        attacked = seen.marks[f"{process}, seconds while attacked"]
        summary = f"{process} ended in {attacked:.1f} s, in {quiet:.1f} s without an attack"
        return Finding(attacked <= quiet + more, summary)

    return judge


def outcome_metrics(outcomes: Counter[str]) -> dict[str, float]:
    """Returns outcomes of an attack as marks."""
    return {OUTCOME + name: float(count) for name, count in outcomes.items()}


def _without_prefix(marks: Mapping[str, float], prefix: str) -> dict[str, float]:
    return {name[len(prefix) :]: at for name, at in marks.items() if name.startswith(prefix)}
