"""One call to a shard, as its caller saw it, and when its parts happened."""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Interval:
    """A piece of time, in seconds."""

    start: float = 0.0
    """From the beginning of what it is a part of."""
    seconds: float = 0.0

    def later(self, seconds: float) -> "Interval":
        """The same piece, as a part of what began so much earlier."""
        return Interval(self.start + seconds, self.seconds)


NEVER = Interval()
"""Of what did not happen, or was not measured."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
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
