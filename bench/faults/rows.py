"""What became of one question."""

from dataclasses import dataclass

from winnow.v1 import answer_pb2

OK = "OK"
REFUSED = "RESOURCE_EXHAUSTED"
HEALTH = "health checks"
"""The phase of calls that are no questions, and next to no work."""


@dataclass(frozen=True, slots=True)
class Row:
    """A question and how it ended."""

    at: float
    """Seconds since the load began, when it was due."""
    seconds: float
    """Until it ended; from when it was due, so that waiting to be sent counts."""
    status: str = OK
    """Or the name of a gRPC status."""
    coverage: float = 1.0
    """Share of the passages that was searched."""
    complete: bool = True
    explained: bool = True
    """Whether every shard that was not searched says why."""
    why: str = ""
    """What the first of those says."""


def whole(row: Row) -> bool:
    """Whether it is an answer from all of the index."""
    return row.status == OK and row.complete


def answered(reply: answer_pb2.AnswerResponse) -> Row:
    """The row of a question that got an answer, without its times."""
    coverage = reply.coverage
    searched = answer_pb2.ShardCoverage.STATUS_SEARCHED
    reasons = [shard.reason for shard in coverage.shards if shard.status != searched]
    return Row(
        0.0,
        0.0,
        OK,
        coverage.passages_searched / max(coverage.passages_known, 1),
        coverage.complete,
        all(map(bool, reasons)),
        next(iter(reasons), ""),
    )
