"""One call to a shard, as its caller saw it."""

from dataclasses import dataclass
from enum import Enum

from winnow.domain.span import NEVER, Span


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
    span: Span


@dataclass(frozen=True, slots=True)
class ShardCall:
    """A call, with its hedges and retries. Spans are parts of the question's time."""

    shard: int
    kind: CallKind
    outcome: CallOutcome
    span: Span
    """From when it was sent to its end."""
    retrieved: Span = NEVER
    """On the content node, as if the way there took no time. So are the reads."""
    reads: tuple[ReadTime, ...] = ()
