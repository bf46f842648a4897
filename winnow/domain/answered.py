"""The result of a question."""

from dataclasses import dataclass, field

from winnow.domain.coverage import Coverage
from winnow.domain.prediction import HeadPrediction
from winnow.domain.question import ReadScope
from winnow.domain.reading import Reading
from winnow.domain.shard_call import ShardCall


@dataclass(slots=True, eq=False)
class PackedAnswers:
    """The serialised answers of a reply, computed once for all callers that get it."""

    wire: bytes
    """A serialised `AnswerResponse` with the answers alone."""
    json: bytes = b""
    """The same answers as a JSON array; empty until the first caller needs it."""

    @property
    def weight(self) -> int:
        """Estimated bytes of both forms; the size of the JSON is not known yet."""
        return 3 * len(self.wire)


@dataclass(frozen=True, slots=True)
class ShardTimings:
    """Seconds that one shard spent on a question, by stage."""

    queue: float = 0.0
    retrieve: float = 0.0
    read: float = 0.0

    def __add__(self, other: "ShardTimings") -> "ShardTimings":
        return ShardTimings(
            self.queue + other.queue, self.retrieve + other.retrieve, self.read + other.read
        )


@dataclass(slots=True, kw_only=True)
class Timings:
    """Seconds that a question spent in each stage; each field is set when its stage ends."""

    queue: float = 0.0
    tokenise: float = 0.0
    encode: float = 0.0
    retrieve: float = 0.0
    read: float = 0.0
    merge: float = 0.0
    total: float = 0.0
    shards: dict[int, ShardTimings] = field(default_factory=dict)
    retrieve_start: float = 0.0
    """Start of the retrieval, in seconds since the question began."""
    read_start: float = 0.0
    """Start of reading, in seconds since the question began."""
    merge_start: float = 0.0
    """Start of merging, in seconds since the question began."""
    calls: tuple[ShardCall, ...] = ()
    """The calls to shards, in the order in which they were sent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reading, its shard, and its confidence."""

    reading: Reading
    shard: int
    confidence: float | None = None
    """The probability that the answer is right, 0 to 1; None if the bundle has no estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The reply to a question."""

    answers: tuple[Answer, ...]
    """Answers, best first."""
    has_answer: bool
    """Whether the best answer is likely enough to be shown as the answer."""
    coverage: Coverage
    timings: Timings
    passages_asked: int
    """Passages that the caller requested to be read, over all shards."""
    passages_granted: int
    """Passages that the front node allowed to read, over all shards; fewer under load."""
    passages_read: int
    """Passages that were read, including those that turned out not to be needed."""
    passages_needed: int
    """Passages that the answers depend on, without unneeded speculative reads."""
    read_scope: ReadScope
    question_truncated: bool
    """Whether the question was longer than the encoder reads, and was cut."""
    heads: tuple[HeadPrediction, ...] = ()
    """Predictions of the requested heads, in the order of the request."""
    cached: bool = False
    """Whether no passage was read, because an equal question was answered before or meanwhile."""
    max_loss: float = 0.0
    """Accuracy budget of early stopping, in points of exact match; 0 if it was disabled."""
    packed: PackedAnswers | None = field(default=None, compare=False)
    """The serialised answers; None if they are short enough to serialise for each caller."""

    @property
    def dimmed(self) -> bool:
        """Whether the answer may be worse because fewer passages were granted than requested."""
        asked, granted = self.passages_asked, self.passages_granted
        return dimmed(asked, granted, self.passages_needed, self.max_loss)


def dimmed(asked: int, granted: int, needed: int | None, max_loss: float | None) -> bool:
    """Whether the answer may be worse because fewer passages were granted than requested.

    False if early stopping needed fewer than the granted passages anyway. `needed` and `max_loss`
    are None if the front node does not report them.
    """
    stopped = bool(max_loss) and needed is not None and needed < granted
    return granted < asked and not stopped
