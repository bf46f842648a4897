"""What was lost in a phase. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.faults.quantiles import nearest_rank
from bench.faults.rows import OK, Row

_MS = 1e3


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the questions of one client that ended in one phase."""

    questions: int
    failed: int
    statuses: str
    """Of those that failed, such as `DEADLINE_EXCEEDED 3`."""
    partial: int
    """Answers from a part of the index."""
    troubled: float
    """Seconds from the first question that failed, or was answered in part, to the last."""
    p50_ms: float
    p99_ms: float
    slowest_ms: float


def figures(rows: Sequence[Row]) -> Figures:
    """The figures of some rows."""
    failed = [row for row in rows if row.status != OK]
    bad = sorted(row.at for row in rows if row.status != OK or not row.complete)
    spent = sorted(row.seconds * _MS for row in rows)
    counted = Counter(row.status for row in failed)
    return Figures(
        questions=len(rows),
        failed=len(failed),
        statuses=", ".join(f"{status} {count}" for status, count in sorted(counted.items())),
        partial=sum(row.status == OK and not row.complete for row in rows),
        troubled=bad[-1] - bad[0] if bad else 0.0,
        p50_ms=nearest_rank(spent, 0.5),
        p99_ms=nearest_rank(spent, 0.99),
        slowest_ms=nearest_rank(spent, 1.0),
    )
