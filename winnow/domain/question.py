"""A question, as asked and as encoded."""

from dataclasses import dataclass
from enum import Enum

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


@dataclass(frozen=True, slots=True)
class Question:
    """A valid question with every option settled."""

    text: str
    passages_to_read: int
    answers: int
    read_scope: ReadScope
    retriever: Retriever
    max_answer_tokens: int
    max_loss: float = 0.0
    """Exact match, in percent, that may be lost by not reading all; 0 reads all."""


@dataclass(frozen=True, slots=True)
class EncodedQuestion:
    """What shards need of a question."""

    text: str
    token_ids: tuple[int, ...]
    """Without special tokens; at most the bundle's `max_question_tokens` less two."""
    vector: NDArray[np.float32]
    """[dimension], of norm one."""
    bundle_fingerprint: str
    """The bundle that made the ids and the vector."""
