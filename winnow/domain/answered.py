"""The reply to a question: answers, coverage and timings."""

from dataclasses import dataclass, field

from winnow.domain.answer_size import AnswerSize
from winnow.domain.coverage import Coverage
from winnow.domain.prediction import HeadPrediction
from winnow.domain.question import ReadScope
from winnow.domain.reading import Reading
from winnow.domain.shard_call import ShardCall


@dataclass(slots=True, eq=False)
class PackedAnswers:
    """The serialised answers of a reply, computed once for all callers that get the reply."""

    wire: bytes
    """A serialised `AnswerResponse` that has only the answers."""
    json: bytes = b""
    """The same answers as a JSON array; empty until the first caller needs it."""

    @property
    def weight(self) -> int:
        """Estimated bytes of `wire` and `json` together, before `json` is computed."""
        return 3 * len(self.wire)


@dataclass(frozen=True, slots=True)
class ShardTimings:
    """Seconds that one shard spent on a question, by stage."""

    queue: float = 0.0
    retrieve: float = 0.0
    read: float = 0.0
    without_tokens: int = 0
    """Candidates without token vectors, if they are why the shard did not use late interaction."""

    def __add__(self, other: "ShardTimings") -> "ShardTimings":
        return ShardTimings(
            self.queue + other.queue,
            self.retrieve + other.retrieve,
            self.read + other.read,
            self.without_tokens + other.without_tokens,
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
    """An answer: a reading with its shard and its confidence."""

    reading: Reading
    shard: int
    confidence: float | None = None
    """The probability that the span is right, 0 to 1; None if the bundle cannot estimate it."""
    sentence_confidence: float | None = field(default=None, kw_only=True)
    """The probability that the sentence contains the right answer; None if it is not estimated."""
    sentence: tuple[int, int] = field(default=(0, 0), kw_only=True)
    """Range of the sentence, list item, table row or list that contains the span."""
    size: AnswerSize = field(default=AnswerSize.SPAN, kw_only=True)
    """The size that is shown; never AUTO."""

    @property
    def shown_text(self) -> str:
        """The part of the passage that is shown as the answer."""
        if self.size is AnswerSize.PASSAGE:
            return self.reading.passage.text
        if self.size is AnswerSize.SENTENCE:
            return self.reading.passage.text[slice(*self.sentence)]
        return self.reading.answer

    @property
    def shown_confidence(self) -> float | None:
        """The probability that the shown text contains the right answer, as far as it is known.

        A right span makes its sentence and its passage right, so their confidence is at least that
        of the span.
        """
        if self.size is AnswerSize.SPAN or self.sentence_confidence is None:
            return self.confidence
        return max(self.sentence_confidence, self.confidence or 0.0)


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
    """Number of passages that the caller requested to be read, over all shards."""
    passages_granted: int
    """Number of passages that the front node allowed to be read, over all shards.

    Less than `passages_asked` under load.
    """
    passages_read: int
    """Number of passages that were read, including unneeded speculative reads."""
    passages_needed: int
    """Number of passages that the answers depend on, without unneeded speculative reads."""
    read_scope: ReadScope
    question_truncated: bool
    """Whether the question was cut because it was longer than the encoder's limit."""
    unread_language: str = ""
    """ISO 639-1 code of the question's language, if the models probably do not read it."""
    heads: tuple[HeadPrediction, ...] = ()
    """Predictions of the requested heads, in the order of the request."""
    cached: bool = False
    """Whether the answers come from an equal question, answered before or at the same time."""
    max_loss: float = 0.0
    """Accuracy budget of early stopping, in points of exact match; 0 if it was disabled."""
    lost_late_interaction: bool = False
    """Whether passages were ranked without late interaction for a passing reason."""
    index: str | None = None
    """Name of the index that was searched; None if the front serves a single index."""
    generation: int | None = None
    """Version of the catalog since which the requested name stands for the index."""
    packed: PackedAnswers | None = field(default=None, compare=False)
    """The serialised answers; None if they are so short that each caller serialises them."""

    @property
    def dimmed(self) -> bool:
        """Whether the answer may be worse because fewer passages were granted than requested."""
        asked, granted = self.passages_asked, self.passages_granted
        return dimmed(asked, granted, self.passages_needed, self.max_loss)


def dimmed(asked: int, granted: int, needed: int | None, max_loss: float | None) -> bool:
    """Whether the answer may be worse because fewer passages were granted than requested.

    False if early stopping ended before all granted passages were needed. `needed` and `max_loss`
    are None if the front node does not report them.
    """
    stopped = bool(max_loss) and needed is not None and needed < granted
    return granted < asked and not stopped
