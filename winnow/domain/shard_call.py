"""One call to a shard, as its caller saw it, and when its parts happened."""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Interval:
    """A piece of time, in seconds."""

    start: float = 0.0
    """Seconds since the beginning of the whole."""
    seconds: float = 0.0

    def later(self, seconds: float) -> "Interval":
        """The same interval within something that began `seconds` earlier."""
        return Interval(self.start + seconds, self.seconds)


NEVER = Interval()
"""The interval of something that did not happen, or was not measured."""


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
    """It had not ended when the answer was complete."""


@dataclass(frozen=True, slots=True)
class ReadTime:
    """When one passage was read."""

    passage_id: str
    span: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCall:
    """A call with its hedges and retries. Intervals are parts of the question's time."""

    shard: int
    kind: CallKind
    outcome: CallOutcome
    span: Interval
    """From sending the call to its end."""
    retrieved: Interval = NEVER
    """Retrieval on the content node, without the time of the way there; so are the reads."""
    reads: tuple[ReadTime, ...] = ()
