"""The reply to a question, as plain values.

`winnow/v1/answer.proto` defines scores, statuses, offsets and times.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from winnow.client.predicting import HeadPrediction, json_value
from winnow.domain.answer_size import AnswerSize
from winnow.domain.answered import dimmed
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import ReadScope
from winnow.domain.shard_call import CallKind, CallOutcome
from winnow.domain.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardTimings:
    """Milliseconds spent on one shard."""

    shard: int
    queue_ms: float
    retrieve_ms: float
    read_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTiming:
    """Start and duration of the read of one passage."""

    passage_id: str
    start_ms: float
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCall:
    """A call of the front node to a shard. Hedges and retries are separate calls.

    Start times on the content node do not include the network.
    """

    shard: int
    kind: CallKind | None
    """Kind of the call; None if this client does not know it."""
    outcome: CallOutcome | None
    """Outcome of the call; None if this client does not know it."""
    start_ms: float
    ms: float
    """Duration of the call. For an abandoned call, the time until the answers were merged."""
    retrieve_start_ms: float = 0.0
    retrieve_ms: float = 0.0
    """Time to retrieve; 0 for a call that only read."""
    reads: tuple[ReadTiming, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Milliseconds spent in each stage, as the front node measured them."""

    queue_ms: float = 0.0
    tokenise_ms: float = 0.0
    encode_ms: float = 0.0
    retrieve_ms: float = 0.0
    read_ms: float = 0.0
    merge_ms: float = 0.0
    total_ms: float = 0.0
    shards: tuple[ShardTimings, ...] = ()
    retrieve_start_ms: float = 0.0
    """Start of retrieving; 0 if shards retrieve and read in one round trip."""
    read_start_ms: float = 0.0
    merge_start_ms: float = 0.0
    calls: tuple[ShardCall, ...] = ()
    """Calls to shards, in the order in which they were sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage that contains an answer."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Metadata as indexed; integers beyond 2^53 lose their last digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer and its scores. `text == passage.text[start:end]`."""

    text: str
    start: int
    """Offset of the first character in the passage, in Unicode code points."""
    end: int
    """Offset after the last character."""
    score: float
    """Final score: higher is better. Scores of different shards are comparable."""
    passage: Passage
    shard: int
    relevance: float = 0.0
    """The reader's raw logit for the passage."""
    span_score: float = 0.0
    """Sum of the reader's raw logits for start and end."""
    distance: float = 0.0
    """Squared Euclidean distance between question and passage: 0 to 4, lower is nearer."""
    hybrid_distance: float = 0.0
    """The distance, reduced by the weight of the question's words in the passage."""
    words: float = 0.0
    """BM25 of the question's words in the passage: higher is better."""
    confidence: float | None = None
    """Probability that `text` is right, 0 to 1; None if the cluster's bundle has none."""
    source: Source | None = None
    """The document of the passage; None if its metadata names none."""
    sentence_start: int | None = None
    """Offset of the sentence, list item, table row or list that contains `text`.

    None from an old front node.
    """
    sentence_end: int | None = None
    """Offset after the last character of the sentence; None from an old front node."""
    size: AnswerSize | None = None
    """The size of `shown_text`: SPAN, SENTENCE or PASSAGE. None if this client does not know it."""
    shown_text: str = ""
    """The part of the passage to show as the answer."""
    sentence_confidence: float | None = None
    """Probability that the sentence contains the right answer; None if the bundle has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCoverage:
    """The status of one shard."""

    shard: int
    passages: int
    status: ShardStatus
    reason: str = ""
    """Why the shard was not searched; empty if it was searched."""
    sequence: int | None = None
    """Number of the last write that the search included; 0 before the first write.

    None if the shard was not searched.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The searched part of the index, in passages. `known == searched + failed`."""

    complete: bool
    """Whether every shard was searched."""
    known: int
    searched: int
    failed: int
    shards: tuple[ShardCoverage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of a front node to a question."""

    question: str
    has_answer: bool
    """Whether the best answer is likely enough to show."""
    answers: tuple[Answer, ...]
    """Answers, the best first. Candidates are listed even if `has_answer` is false."""
    coverage: Coverage
    timings: Timings
    passages_read: int
    """Number of passages read, including speculative reads; 0 if `cached`."""
    passages_asked: int
    """Number of passages that the question requested to read, over all shards."""
    passages_granted: int
    """Number of passages that the front node admitted; fewer than requested under load."""
    read_scope: ReadScope | None
    """The read scope in effect; None if this client does not know it."""
    request_id: str
    """Id of the question in the logs of every process that worked on it."""
    question_truncated: bool
    """Whether the end of the question was cut off, because the encoder has a maximum length."""
    unread_language: str = ""
    """ISO 639-1 code of the question's language, such as `de`, if the models cannot read it.

    The answers are then worth little.
    """
    heads: tuple[HeadPrediction, ...] = ()
    """Predictions of the requested heads, in the order of the request."""
    cached: bool = False
    """Whether the answer came from the cache, or from the same question asked concurrently."""
    passages_needed: int | None = None
    """Number of passages that the answers depend on; None from an old front node."""
    max_loss: float | None = None
    """Accuracy budget of early stopping, in points of exact match; 0 if it was disabled.

    None from an old front node, which does not report it.
    """
    index: str | None = None
    """Name of the index that was searched; None if the front node serves a single index."""
    generation: int | None = None
    """Grows when the requested name stands for another index; None without `index`."""

    @property
    def dimmed(self) -> bool:
        """Whether overload reduced the passages read, so that answers may be worse."""
        requested, granted = self.passages_asked, self.passages_granted
        return dimmed(requested, granted, self.passages_needed, self.max_loss)

    @property
    def answer(self) -> str | None:
        """The shown text of the best answer; None if no answer is likely."""
        return self.answers[0].shown_text if self.has_answer and self.answers else None

    def as_dict(self) -> dict[str, Any]:
        """Converts to JSON values: enums by value, non-finite figures as None."""
        return {"question": self.question, "answer": self.answer, **json_value(asdict(self))}
