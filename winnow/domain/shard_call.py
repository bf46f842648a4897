"""A call to a shard: its outcome, and the time intervals of its steps."""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of time, in seconds."""

    start: float = 0.0
    """Start in seconds since the beginning of the enclosing call or question."""
    seconds: float = 0.0
    """Duration."""

    def later(self, seconds: float) -> "Interval":
        """The same interval, relative to a call or question that began `seconds` earlier."""
        return Interval(self.start + seconds, self.seconds)


NEVER = Interval()
"""The interval of a step that did not happen, or was not measured."""


class CallKind(Enum):
    """The kind of a call to a shard."""

    RETRIEVE = "retrieve"
    READ = "read"
    SEARCH = "search"
    """Retrieve and read in one round trip."""


class CallOutcome(Enum):
    """How a call ended."""

    ANSWERED = "answered"
    FAILED = "failed"
    ABANDONED = "abandoned"
    """The call had not ended when the answer was complete."""


@dataclass(frozen=True, slots=True)
class ReadTime:
    """When one passage was read."""

    passage_id: str
    span: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCall:
    """A call with its hedges and retries. Intervals are relative to the start of the question."""

    shard: int
    kind: CallKind
    outcome: CallOutcome
    span: Interval
    """The interval from sending the call to its end."""
    retrieved: Interval = NEVER
    """The retrieval on the content node, without network time."""
    reads: tuple[ReadTime, ...] = ()
    """The reads on the content node, without network time."""
