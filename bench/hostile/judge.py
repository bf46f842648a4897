"""Whether what was seen is what must hold, beyond `bench.faults.judge`. Pure."""

from collections.abc import Mapping

from bench.faults.judge import Criterion, Finding, Observed

OUTCOME = "outcome "
"""What begins the mark that counts an outcome of an attack."""
CHANGED = "changed: "
"""What begins the mark of a question whose answer is another one after an attack."""
LABEL = "label "
"""What begins the mark of a label that may be made of what a client sent."""


def outcomes(*allowed: str, least: int = 1) -> Criterion:
    """The attack had so many outcomes, and no other ones than these."""

    def judge(seen: Observed) -> Finding:
        counts = _named(seen.marks, OUTCOME)
        wrong = set(counts) - set(allowed)
        said = ", ".join(f"{count:.0f} {name}" for name, count in sorted(counts.items()))
        said = said or "nothing came of it"
        if wrong:
            said += f": {', '.join(sorted(wrong))} must not be"
        enough = sum(counts.values()) >= least
        if not (wrong or enough):  # ended early, or a slow machine: that is no fault of the server
            return Finding(None, f"{said}: too few, {least} are judged")
        return Finding(not wrong, said)

    return judge


def none_named(prefix: str, what: str) -> Criterion:
    """No mark begins so; `what` says what that means."""

    def judge(seen: Observed) -> Finding:
        found = sorted(_named(seen.marks, prefix))
        return Finding(not found, f"{what}: {', '.join(found) or 'none'}")

    return judge


def takes_no_longer(process: str, more: float) -> Criterion:
    """It ends at most `more` seconds later while it is attacked."""

    def judge(seen: Observed) -> Finding:
        quiet = seen.marks[f"{process}, seconds when quiet"]
        attacked = seen.marks[f"{process}, seconds while attacked"]
        said = f"{process} ended in {attacked:.1f} s, in {quiet:.1f} s when all was quiet"
        return Finding(attacked <= quiet + more, said)

    return judge


def _named(marks: Mapping[str, float], prefix: str) -> dict[str, float]:
    return {name[len(prefix) :]: at for name, at in marks.items() if name.startswith(prefix)}
