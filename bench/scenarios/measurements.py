"""The outcomes of the questions of a scenario, and statistics of them."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from bench.quantiles import nearest_rank
from winnow.v1 import answer_pb2

OK = "OK"
REFUSED = "RESOURCE_EXHAUSTED"
HEALTH = "health checks"
"""Phase name for the outcomes of health checks."""


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """The outcome of one question."""

    due: float
    """Scheduled time of the question, in seconds since the start of the load."""
    seconds: float
    """Latency in seconds since `due`, even if the question was sent later."""
    status: str = OK
    """OK, or the name of another gRPC status."""
    _: KW_ONLY
    coverage: float = 1.0
    """Searched share of the index's passages, 0 to 1."""
    complete: bool = True
    """Whether the question was answered from the whole index; False for a failed question."""
    has_reasons: bool = True
    """Whether the reply has a reason for each shard that was not searched."""
    reason: str = ""
    """The first reason of a shard that was not searched; empty without such a shard."""


@dataclass(frozen=True, slots=True)
class Measurements:
    """The measurements of one scenario."""

    phases: Mapping[str, Sequence[QuestionOutcome]]
    """Outcomes of the questions that ended in each phase."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Other measured values, by name."""


def failed_outcome(status: str) -> QuestionOutcome:
    """Returns the outcome of a failed question, whose two times are 0."""
    return QuestionOutcome(0.0, 0.0, status, coverage=0.0, complete=False)


def answered_outcome(reply: answer_pb2.AnswerResponse) -> QuestionOutcome:
    """Returns the outcome of an answered question, whose two times are 0."""
    coverage = reply.coverage
    searched = answer_pb2.ShardCoverage.STATUS_SEARCHED
    reasons = [shard.reason for shard in coverage.shards if shard.status != searched]
    return QuestionOutcome(
        0.0,
        0.0,
        coverage=coverage.passages_searched / max(coverage.passages_known, 1),
        complete=coverage.complete,
        has_reasons=all(reasons),
        reason=next(iter(reasons), ""),
    )


def availability(outcomes: Sequence[QuestionOutcome]) -> float:
    """Returns the share of questions that were answered, completely or in part."""
    return sum(outcome.status == OK for outcome in outcomes) / len(outcomes) if outcomes else 0.0


def completeness(outcomes: Sequence[QuestionOutcome]) -> float:
    """Returns the share of questions that were answered from the whole index."""
    return sum(outcome.complete for outcome in outcomes) / len(outcomes) if outcomes else 0.0


def mean_coverage(outcomes: Sequence[QuestionOutcome]) -> float:
    """Returns the mean coverage of the answers; 0 without answers."""
    covered = [outcome.coverage for outcome in outcomes if outcome.status == OK]
    return sum(covered) / len(covered) if covered else 0.0


def latencies(outcomes: Sequence[QuestionOutcome], status: str = OK) -> list[float]:
    """Returns the latencies of the questions with `status`."""
    return [outcome.seconds for outcome in outcomes if outcome.status == status]


def latency_quantile(outcomes: Sequence[QuestionOutcome], level: float, status: str = OK) -> float:
    """Returns a quantile of the latencies of the questions with `status`; NaN without questions."""
    return nearest_rank(latencies(outcomes, status), level)
