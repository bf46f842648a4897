"""What clients did and saw, and what the logs of shards hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from winnow.domain.answered import Answered
from winnow.domain.write import Outcome, Position


@dataclass(slots=True, kw_only=True)
class WriteCall:
    """A put or a deletion of a client."""

    client: int
    front: str
    id: str
    """The stored id of the passage, which names its tenant."""
    text: str
    """The text that was put; empty for a deletion."""
    version: int | None
    begun: float
    ended: float = float("inf")
    """When the client got the result or the error."""
    settled: float = float("inf")
    """When the write has had its effect, or will never have one: at its end, or at its deadline if
    its front was killed."""
    outcome: Outcome | None = None
    """The outcome; None if the call failed, so that its effect is unknown."""
    position: Position | None = None
    error: str = ""


@dataclass(slots=True, kw_only=True)
class QuestionCall:
    """A question of a client."""

    client: int
    front: str
    tenant: str
    text: str
    after: tuple[Position, ...]
    allows_partial: bool
    required: Mapping[int, int]
    """The last write of each shard that the front had acknowledged when the call began."""
    begun: float
    ended: float = float("inf")
    answered: Answered | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class AppliedWrite:
    """A write in the log of a shard."""

    sequence: int
    id: str
    text: str | None
    """The text that was put; None for a deletion."""
    version: int | None


@dataclass(slots=True)
class ShardLog:
    """The writes of one log, as the replicas of the shard appended them."""

    writes: list[AppliedWrite] = field(default_factory=list)
    appended_at: list[float] = field(default_factory=list)
    """When a replica first appended each write."""


@dataclass(slots=True)
class History:
    """Everything that a simulation has recorded."""

    built: Mapping[str, str]
    """The texts of the index as it was built, by id."""
    writes: list[WriteCall] = field(default_factory=list)
    questions: list[QuestionCall] = field(default_factory=list)
    logs: dict[int, ShardLog] = field(default_factory=dict)
    """The log of each shard."""

    own_logs: dict[tuple[int, str], list[AppliedWrite]] = field(default_factory=dict)
    """The log of each replica, by shard and name of the node."""

    def log(self, shard: int) -> ShardLog:
        return self.logs.setdefault(shard, ShardLog())


def state_after(built: Mapping[str, str], writes: Iterable[AppliedWrite]) -> dict[str, str]:
    """Returns the texts of a shard by id after writes; `built` are those before."""
    state = dict(built)
    for write in writes:
        if write.text is None:
            state.pop(write.id, None)
        else:
            state[write.id] = write.text
    return state
