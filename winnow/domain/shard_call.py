"""One call to a shard, as its caller saw it."""

from dataclasses import dataclass
from enum import Enum

from winnow.domain.interval import NEVER, Interval


class CallKind(Enum):
    """What a shard was asked to do."""

    RETRIEVE = "retrieve"
    READ = "read"
    SEARCH = "search"
    """Both in one round trip."""


class CallOutcome(Enum):
    """How a call ended."""

    ANSWERED = "answered"
    FAILED = "failed"
    ABANDONED = "abandoned"
    """It had not ended when nobody waited for it any more."""


@dataclass(frozen=True, slots=True)
class ReadTime:
    """When one passage was read."""

    passage_id: str
    span: Interval


@dataclass(frozen=True, slots=True)
class ShardCall:
    """A call, with its hedges and retries. Spans are parts of the question's time."""

    shard: int
    kind: CallKind
    outcome: CallOutcome
    span: Interval
    """From when it was sent to its end."""
    retrieved: Interval = NEVER
    """On the content node, as if the way there took no time. So are the reads."""
    reads: tuple[ReadTime, ...] = ()
