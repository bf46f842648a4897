"""The result of a question."""

from dataclasses import dataclass, field

from winnow.domain.coverage import Coverage
from winnow.domain.prediction import HeadPrediction
from winnow.domain.question import ReadScope
from winnow.domain.reading import Reading
from winnow.domain.shard_call import ShardCall


@dataclass(slots=True, eq=False)
class Packed:
    """The answers of a reply; its other fields differ from caller to caller."""

    wire: bytes
    """An `AnswerResponse` that has nothing but its answers, serialised."""
    json: bytes = b""
    """The same answers as a JSON array; empty until the first caller needs it."""

    @property
    def weight(self) -> int:
        """Bytes of both forms, about: it is not known yet how long the second is."""
        return 3 * len(self.wire)


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


@dataclass(slots=True, kw_only=True)
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
    retrieve_start: float = 0.0
    """Since the question began, as are the next two."""
    read_start: float = 0.0
    merge_start: float = 0.0
    calls: tuple[ShardCall, ...] = ()
    """To the shards, in the order in which they were sent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reading and the shard it came from."""

    reading: Reading
    shard: int
    confidence: float | None = None
    """The probability that it is right, 0 to 1; None if the bundle cannot tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Everything that is said in reply to a question."""

    answers: tuple[Answer, ...]
    """Best first."""
    has_answer: bool
    """Whether the best answer is likely enough to be shown as one."""
    coverage: Coverage
    timings: Timings
    passages_asked: int
    """Passages that the caller wanted to be read, over all shards."""
    passages_granted: int
    """Passages that might be read, over all shards: fewer where there was too much to do."""
    passages_read: int
    """Passages that were read, also those that turned out not to be needed."""
    passages_needed: int
    """Passages that the answers rest on, however many were read ahead or are remembered."""
    read_scope: ReadScope
    question_truncated: bool
    """Whether the question was longer than the encoder reads, and was cut."""
    heads: tuple[HeadPrediction, ...] = ()
    """What the heads that were asked for say of the question, in that order."""
    cached: bool = False
    """Whether nothing was read for it: the same question was asked before, or at the same time."""
    max_loss: float = 0.0
    """Exact match, in percent, that stopping early might lose; 0 if all had to be read."""
    packed: Packed | None = field(default=None, compare=False)
    """The answers as they are sent; None if they are short enough to be written for each caller."""

    @property
    def dimmed(self) -> bool:
        """Whether it might be better if more passages had been let in to be read."""
        asked, granted = self.passages_asked, self.passages_granted
        return dimmed(asked, granted, self.passages_needed, self.max_loss)


def dimmed(asked: int, granted: int, needed: int | None, max_loss: float | None) -> bool:
    """Whether fewer passages were let in than were asked for, and reading did not stop before them.

    What a front does not tell is None.
    """
    stopped = bool(max_loss) and needed is not None and needed < granted
    return granted < asked and not stopped
