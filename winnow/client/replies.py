"""What comes back for a question, as plain values.

Scores, statuses and offsets mean what `winnow/v1/answer.proto` says of them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from winnow.client.plain import plain
from winnow.client.predictions import HeadPrediction
from winnow.client.timings import Timings
from winnow.domain.answered import dimmed
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import ReadScope


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that an answer was found in."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """As it was indexed; empty if there is none. Integers beyond 2^53 lose their last digits."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Words of a passage, and how likely they are. `text == passage.text[start:end]`, always."""

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
    """The distance less what the question's words in the passage are worth: lower is nearer."""
    words: float = 0.0
    """BM25 of the question's words in the passage: higher is better."""
    confidence: float | None = None
    """Probability that the answer is right, 0 to 1; None if the cluster's bundle has none."""


@dataclass(frozen=True, slots=True)
class ShardCoverage:
    """How one shard fared."""

    shard: int
    passages: int
    status: ShardStatus
    reason: str = ""
    """Empty where the shard was searched."""
    sequence: int | None = None
    """The last write that it knew of when it was searched, 0 before the first; None if it was not.
    """


@dataclass(frozen=True, slots=True)
class Coverage:
    """What part of the index the answers come from, in passages. `known == searched + failed`."""

    complete: bool
    """True only if every shard was searched."""
    known: int
    searched: int
    failed: int
    shards: tuple[ShardCoverage, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """Everything that is said in reply to a question."""

    question: str
    has_answer: bool
    """Whether the best answer is likely enough to be shown as one."""
    answers: tuple[Answer, ...]
    """Best first. Candidates are listed even where `has_answer` is false."""
    coverage: Coverage
    timings: Timings
    passages_read: int
    """Also those that were read ahead and then not needed; 0 if `cached`."""
    passages_asked: int
    """Passages that should have been read, over all shards."""
    passages_granted: int
    """Passages that the front node let be read: fewer where there was too much to do."""
    read_scope: ReadScope | None
    """The scope that was used; None if this client does not know it."""
    request_id: str
    """Also in the logs of every process that worked on the question."""
    question_truncated: bool
    """The question was longer than the encoder reads, and was cut."""
    heads: tuple[HeadPrediction, ...] = ()
    """What the heads that were asked for say of the question, in that order."""
    cached: bool = False
    """Nothing was read for it: the same question was asked before, or at the same time."""
    passages_needed: int | None = None
    """Passages that the answers rest on; None if the front node is too old to say."""
    max_loss: float | None = None
    """Exact match, in percent, that stopping early might lose: 0 if every passage had to be read;
    None if the front node is too old to say.
    """

    @property
    def dimmed(self) -> bool:
        """Whether the answers might be better had the front node let more passages be read."""
        asked, granted = self.passages_asked, self.passages_granted
        return dimmed(asked, granted, self.passages_needed, self.max_loss)

    @property
    def answer(self) -> str | None:
        """The words of the best answer, or None if no answer is likely."""
        return self.answers[0].text if self.has_answer and self.answers else None

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON has it: enums by value; figures that are not finite become None."""
        return {"question": self.question, "answer": self.answer, **plain(asdict(self))}
