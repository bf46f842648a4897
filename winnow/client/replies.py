"""The reply to a question, as plain values.

Scores, statuses, offsets and times mean what `winnow/v1/answer.proto` says of them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from winnow.client.predicting import HeadPrediction, plain
from winnow.domain.answered import dimmed
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import ReadScope
from winnow.domain.shard_call import CallKind, CallOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardTimings:
    """Milliseconds spent on one shard."""

    shard: int
    queue_ms: float
    retrieve_ms: float
    read_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTiming:
    """One passage that was read."""

    passage_id: str
    start_ms: float
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCall:
    """A call of the front node to a shard, with its hedges and retries.

    Starts on the content node do not include the time of the way there.
    """

    shard: int
    kind: CallKind | None
    """None if this client does not know the kind; the same holds for the outcome."""
    outcome: CallOutcome | None
    start_ms: float
    ms: float
    """Until the call ended; until the answers were merged if it was abandoned."""
    retrieve_start_ms: float = 0.0
    retrieve_ms: float = 0.0
    """0 if it did not retrieve."""
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
    """0 where shards retrieve and read in one round trip."""
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
    """As it was indexed; empty if there is none. Integers beyond 2^53 lose their last digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer and its scores. `text == passage.text[start:end]`, always."""

    text: str
    start: int
    """First character, in Unicode code points."""
    end: int
    """One past the last character."""
    score: float
    """Higher is better; comparable over shards."""
    passage: Passage
    shard: int
    relevance: float = 0.0
    """The reader's raw logit for the passage."""
    span_score: float = 0.0
    """The reader's raw logits for start and end."""
    distance: float = 0.0
    """Squared Euclidean distance between question and passage: 0 to 4, lower is nearer."""
    hybrid_distance: float = 0.0
    """The distance, reduced by the weight of the question's words in the passage."""
    words: float = 0.0
    """BM25 of the question's words in the passage: higher is better."""
    confidence: float | None = None
    """Probability that the answer is right, 0 to 1; None if the cluster's bundle has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCoverage:
    """The status of one shard."""

    shard: int
    passages: int
    status: ShardStatus
    reason: str = ""
    """Empty where the shard was searched."""
    sequence: int | None = None
    """Last write that the shard had when it was searched; 0 before the first write, None if the
    shard was not searched.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The searched part of the index, in passages. `known == searched + failed`, always."""

    complete: bool
    """True only if every shard was searched."""
    known: int
    searched: int
    failed: int
    shards: tuple[ShardCoverage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of a front node to a question."""

    question: str
    has_answer: bool
    """Whether the best answer is likely enough to be shown as one."""
    answers: tuple[Answer, ...]
    """Best first. Candidates are listed even where `has_answer` is false."""
    coverage: Coverage
    timings: Timings
    passages_read: int
    """Passages that were read, speculative reads included; 0 if `cached`."""
    passages_asked: int
    """Passages that the question asked to read, over all shards."""
    passages_granted: int
    """Passages that the front node allowed to read; fewer than asked under load."""
    read_scope: ReadScope | None
    """The scope that was used; None if this client does not know it."""
    request_id: str
    """Id of the question in the logs of every process that worked on it."""
    question_truncated: bool
    """The question was longer than the encoder reads, and was cut."""
    heads: tuple[HeadPrediction, ...] = ()
    """Predictions of the requested heads, in the order of the request."""
    cached: bool = False
    """Whether no passage was read: the same question was asked before, or at the same time."""
    passages_needed: int | None = None
    """Passages that the answers depend on; None if the front node is too old to say."""
    max_loss: float | None = None
    """Accuracy budget of early stopping, in points of exact match; 0 if it was disabled.

    None if the front node is too old to say.
    """

    @property
    def dimmed(self) -> bool:
        """Whether the front node read fewer passages than asked, so that answers may be worse."""
        asked, granted = self.passages_asked, self.passages_granted
        return dimmed(asked, granted, self.passages_needed, self.max_loss)

    @property
    def answer(self) -> str | None:
        """The words of the best answer, or None if no answer is likely."""
        return self.answers[0].text if self.has_answer and self.answers else None

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON has it: enums by value; figures that are not finite become None."""
        return {"question": self.question, "answer": self.answer, **plain(asdict(self))}
