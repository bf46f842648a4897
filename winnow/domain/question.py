"""A question: as requested, as validated, and as encoded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from winnow.domain.write import Position

if TYPE_CHECKING:  # clients need no arrays: `client/pyproject.toml`
    import numpy as np
    from numpy.typing import NDArray


class ReadScope(Enum):
    """Which passages are read when the index is spread over shards."""

    GLOBAL = "global"
    """The best of the whole cluster, each where it lives."""
    PER_SHARD = "per-shard"
    """Every shard's own best, as Vespa's rerank-count does."""


class Retriever(Enum):
    """How passages are found."""

    DENSE = "dense"
    """The nearest by encoding."""
    SPARSE = "sparse"
    """The best by the question's words in them, of all."""
    HYBRID = "hybrid"
    """Of many near ones, those that have the question's words in them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalDepth:
    """How many candidates of each kind are retrieved, and how many passages are read."""

    passages: int
    """Passages to read."""
    candidates: int = 0
    """Nearest passages by encoding, from which those to read are chosen by distance and words."""
    by_words: int = 0
    """Best passages by words that are candidates, too; the only candidates if `candidates` is 0."""
    where: str = ""
    """Which passages may be found, by their metadata (`winnow.filtering`); empty for all."""
    after: int = 0
    """The write that the shard must have before it retrieves; 0 for none."""

    @property
    def by_words_alone(self) -> bool:
        """Whether distance neither finds passages nor orders them."""
        return self.by_words > 0 and not self.candidates

    @property
    def looked_at(self) -> int:
        """Nearest passages that are candidates: at least the number to read, if there are any."""
        return 0 if self.by_words_alone else max(self.candidates, self.passages)

    @property
    def best_words(self) -> int:
        """Best passages by words that are candidates; as many as are read, if only these are."""
        return max(self.by_words, self.passages) if self.by_words_alone else self.by_words


class PartialResults(Enum):
    """What happens to an answer that does not cover the whole index."""

    ALLOW = "allow"
    """The answer is given, and says what it covers."""
    FORBID = "forbid"
    """The question is refused as soon as a shard has failed."""


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """How long shards are waited for. The defaults wait for every one until the deadline."""

    min_coverage: float = 1.0
    """Share of the shards, 0 to 1, that is waited for until the deadline."""
    min_wait_factor: float = 0.0
    """Share of the time left once that is reached, 0 to 1, that the last shard is waited for."""
    max_wait_factor: float = 1.0
    """The same, `min_wait_factor` to 1, where as many shards are missing as may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A valid question with every option settled."""

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
    """Heads to apply to it, by their ids."""
    where: str = ""
    """Which passages may answer: the canonical text of a filter; empty for all."""
    after: tuple[Position, ...] = ()
    """Writes that the answer must know of, at most one for each shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedQuestion:
    """What shards need of a question."""

    text: str
    token_ids: tuple[int, ...]
    """Without special tokens; at most the bundle's `max_question_tokens` less two."""
    vector: NDArray[np.float32]
    """[dimension], of norm one."""
    bundle_fingerprint: str
    """The bundle that made the ids and the vector."""
    client: str = ""
    """Key of the caller, for fair sharing; empty without a key. No answer depends on it."""
    rarities: tuple[float, ...] = ()
    """How rare each of the token ids is in the whole index, as BM25 weighs it. Empty: as it was
    counted when the index was built.
    """
    mean_length: float = 0.0
    """Mean number of tokens of the index's passages; with `rarities` only."""


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
    """Heads to apply to the question."""
    fresh: bool = False
    """Whether to read passages even if the answer is in the cache."""
    where: str = ""
    """A filter (`winnow.filtering`); empty for none."""
    after: tuple[Position, ...] = ()
    """Writes that the answer must know of, at most one for each shard."""
