"""The result of a question."""

from dataclasses import dataclass, field

from winnow.domain.coverage import Coverage
from winnow.domain.question import ReadScope
from winnow.domain.reading import Reading


@dataclass(frozen=True, slots=True)
class ShardTimings:
    """Seconds one shard spent on a question."""

    queue: float = 0.0
    retrieve: float = 0.0
    read: float = 0.0

    def __add__(self, other: "ShardTimings") -> "ShardTimings":
        return ShardTimings(
            self.queue + other.queue, self.retrieve + other.retrieve, self.read + other.read
        )


@dataclass(slots=True)
class Timings:
    """Seconds spent in each stage, filled in as they pass."""

    queue: float = 0.0
    tokenise: float = 0.0
    encode: float = 0.0
    retrieve: float = 0.0
    read: float = 0.0
    merge: float = 0.0
    total: float = 0.0
    shards: dict[int, ShardTimings] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """A reading and the shard it came from."""

    reading: Reading
    shard: int


@dataclass(frozen=True, slots=True)
class Answered:
    """Everything that is said in reply to a question."""

    answers: tuple[Answer, ...]
    has_answer: bool
    coverage: Coverage
    timings: Timings
    passages_read: int
    read_scope: ReadScope
    question_truncated: bool
