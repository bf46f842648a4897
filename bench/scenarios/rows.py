"""The outcomes of questions, and figures of many. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from bench.quantiles import nearest_rank
from winnow.v1 import answer_pb2

OK = "OK"
REFUSED = "RESOURCE_EXHAUSTED"
HEALTH = "health checks"
"""The phase of health checks, which cost next to nothing to serve."""


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one question."""

    at: float
    """Seconds from the start of the load until the question was due."""
    seconds: float
    """Seconds from when the question was due until its end, so that waiting to be sent counts."""
    status: str = OK
    """OK, or the name of another gRPC status."""
    _: KW_ONLY
    coverage: float = 1.0
    """Share of the passages that was searched."""
    complete: bool = True
    explained: bool = True
    """Whether each shard that was not searched has a reason."""
    reason: str = ""
    """The first of these reasons."""

    @property
    def whole(self) -> bool:
        """Whether the question was answered from the whole index."""
        return self.status == OK and self.complete


@dataclass(frozen=True, slots=True)
class Observed:
    """What was measured while a scenario ran."""

    phases: Mapping[str, Sequence[Row]]
    """The questions that ended in each phase."""
    marks: Mapping[str, float] = field(default_factory=dict)
    """Other measurements, by name."""


def failed(status: str) -> Row:
    """Returns the row of a question that was not answered, without its times."""
    return Row(0.0, 0.0, status, coverage=0.0, complete=False)


def answered(reply: answer_pb2.AnswerResponse) -> Row:
    """Returns the row of an answered question, without its times."""
    coverage = reply.coverage
    searched = answer_pb2.ShardCoverage.STATUS_SEARCHED
    reasons = [shard.reason for shard in coverage.shards if shard.status != searched]
    return Row(
        0.0,
        0.0,
        coverage=coverage.passages_searched / max(coverage.passages_known, 1),
        complete=coverage.complete,
        explained=all(reasons),
        reason=next(iter(reasons), ""),
    )


def availability(rows: Sequence[Row]) -> float:
    """Returns the share of the questions that were answered, also from a part of the index."""
    return sum(row.status == OK for row in rows) / len(rows) if rows else 0.0


def completeness(rows: Sequence[Row]) -> float:
    """Returns the share of the questions that were answered from the whole index."""
    return sum(row.whole for row in rows) / len(rows) if rows else 0.0


def coverage(rows: Sequence[Row]) -> float:
    """Returns the mean coverage of the answers; 0 without any."""
    covered = [row.coverage for row in rows if row.status == OK]
    return sum(covered) / len(covered) if covered else 0.0


def seconds(rows: Sequence[Row], status: str = OK) -> list[float]:
    """Returns the latencies of the questions with `status`."""
    return [row.seconds for row in rows if row.status == status]


def latency(rows: Sequence[Row], share: float, status: str = OK) -> float:
    """Returns a quantile of the latencies of the questions with `status`; NaN if there are none."""
    return nearest_rank(seconds(rows, status), share)
