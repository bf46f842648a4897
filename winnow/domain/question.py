"""Questions in three forms: as requested, validated, and encoded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from winnow.domain.answer_size import AnswerSize
from winnow.domain.write import Position

if TYPE_CHECKING:  # clients need no arrays: `client/pyproject.toml`
    import numpy as np
    from numpy.typing import NDArray


class ReadScope(Enum):
    """Which passages are read if the index has several shards."""

    GLOBAL = "global"
    """The best passages of the whole index are read, each on its shard."""
    PER_SHARD = "per-shard"
    """Every shard reads its best passages, as with Vespa's rerank-count."""


class Retriever(Enum):
    """How passages are retrieved."""

    DENSE = "dense"
    """By vector distance."""
    SPARSE = "sparse"
    """By the words of the question (BM25), among all passages."""
    HYBRID = "hybrid"
    """By vector distance and words together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalDepth:
    """How many candidates of each kind are retrieved, and how many passages are read."""

    passages: int
    """Number of passages to read."""
    candidates: int = 0
    """Number of nearest passages to find, as candidates for the ranking by distance and words."""
    by_words: int = 0
    """Number of best passages by BM25 to find, as further candidates."""
    where: str = ""
    """A filter of passages by their metadata (`winnow.filtering`); empty for all."""
    after: int = 0
    """Number of the last write that the shard must have before it retrieves; 0 for none."""

    @property
    def is_by_words_only(self) -> bool:
        """Whether passages are found and ordered by words only, not by distance."""
        return self.by_words > 0 and not self.candidates

    @property
    def nearest_candidates(self) -> int:
        """Number of nearest passages to find: at least the number to read; 0 without vectors."""
        return 0 if self.is_by_words_only else max(self.candidates, self.passages)

    @property
    def word_candidates(self) -> int:
        """Number of best passages by BM25 to find; without vectors, at least `passages`."""
        return max(self.by_words, self.passages) if self.is_by_words_only else self.by_words


class PartialResults(Enum):
    """Whether an answer may leave out shards that failed."""

    ALLOW = "allow"
    """The answer is returned, and its coverage lists the shards that failed."""
    FORBID = "forbid"
    """The question fails as soon as a shard fails."""


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """How long a question waits for shards. The default is to wait for all until the deadline."""

    min_coverage: float = 1.0
    """Share of the shards, 0 to 1, that must reply before late shards may be given up; 1 waits for
    all. At least one shard that found something is always awaited.
    """
    min_wait_factor: float = 0.0
    """Share of the remaining time, 0 to 1, to wait for the last missing shard."""
    max_wait_factor: float = 1.0
    """Share of the remaining time, up to 1, to wait if as many shards are missing as `min_coverage`
    allows.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A validated question, with a value for every option."""

    text: str
    passages_to_read: int
    answers: int
    read_scope: ReadScope
    retriever: Retriever
    max_answer_tokens: int
    max_loss: float = 0.0
    """Accuracy budget for early stopping, in points of exact match; 0 disables it."""
    partial_results: PartialResults = PartialResults.ALLOW
    patience: WaitPolicy = WaitPolicy()
    heads: tuple[str, ...] = ()
    """Ids of the heads to apply to the question."""
    where: str = ""
    """The canonical text of a filter of passages; empty for all."""
    after: tuple[Position, ...] = ()
    """Writes that the answer must include, at most one position per shard."""
    answer_size: AnswerSize = AnswerSize.AUTO
    """Which part of a passage is shown as the answer."""
    asks_for_several: bool = False
    """Whether the text asks for several things, such as a list."""
    min_confidence: float | None = None
    """Confidence below which there is no answer, 0 to 1; None to use the bundle's threshold."""
    tenant: str = ""
    """Tenant whose passages are searched; empty for an index without tenants."""


@dataclass(frozen=True, slots=True, eq=False)
class QuestionTokens:
    """The token vectors of a question, for late interaction (`winnow.late_interaction`)."""

    levels: NDArray[np.int16]
    """The vector of each token in integers, [tokens, values]; special tokens are included."""
    weights: NDArray[np.float32]
    """The weight of each token, at least 0, [tokens]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedQuestion:
    """The parts of a question that shards need."""

    text: str
    token_ids: tuple[int, ...]
    """Token ids without special tokens; at most the bundle's `max_question_tokens` less two."""
    vector: NDArray[np.float32]
    """Encoding of the question, [dimension], with norm 1."""
    bundle_fingerprint: str
    """Fingerprint of the bundle that computed the token ids and the vector."""
    client: str = ""
    """Client key for fair sharing; may be empty. Does not affect answers."""
    rarities: tuple[float, ...] = ()
    """BM25 weight (inverse document frequency) of each token id in the whole index.

    If empty, the shard uses the counts of the build. If there is a tenant, it uses the counts of
    its passages of this tenant.
    """
    mean_length: float = 0.0
    """Mean number of tokens of the index's passages; set only with `rarities`."""
    tokens: QuestionTokens | None = None
    """Token vectors; None if passages are ranked without late interaction."""
    max_answer_tokens: int = 10
    """Maximum length of an answer that is read, in tokens."""
    tenant: str = ""
    """Tenant whose passages are searched and read; empty for an index without tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRequest:
    """A question and its options, not validated. None leaves an option to the server's default.

    `Question` says what each option means.
    """

    question: str
    passages_to_read: int | None = None
    answers: int | None = None
    read_scope: ReadScope | None = None
    retriever: Retriever | None = None
    max_answer_tokens: int | None = None
    max_loss: float | None = None
    partial_results: PartialResults | None = None
    min_coverage: float | None = None
    min_wait_factor: float | None = None
    max_wait_factor: float | None = None
    heads: tuple[str, ...] = ()
    """Ids of the heads to apply to the question."""
    fresh: bool = False
    """Whether to ignore the cache of answers."""
    where: str = ""
    """A filter (`winnow.filtering`); empty for none."""
    after: tuple[Position, ...] = ()
    """Writes that the answer must include, at most one position per shard."""
    answer_size: AnswerSize | None = None
    min_confidence: float | None = None
    index: str = ""
    """Name of the index, or an alias of it; empty for the default index."""
    tenant: str = ""
    """Tenant that the caller names; empty if the key of the caller decides."""
