"""Token vectors as plain arithmetic: each token has a vector that depends on its id alone."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.late_interaction.computed_tokens import ComputedTokens
from winnow.content_node.late_interaction.passage_tokens import PassageTokens
from winnow.content_node.late_interaction.scoring import LateRanking, LateScorer
from winnow.content_node.states.writing import StatesWriter
from winnow.deadline import Clock
from winnow.domain.question import QuestionTokens
from winnow.late_interaction.levels import quantise_passage, quantise_question
from winnow.reading.states_kind import TOKEN_VECTORS, StatesKind, with_checksum
from winnow.reading.stored_passage import StoredPassage

VALUES = 8
FINGERPRINT = "t" * 16
_CLS = 99


def token_vectors(ids: tuple[int, ...]) -> NDArray[np.float32]:
    """The vectors of a text's tokens and of one special token, of norm 1."""
    rows = [np.random.default_rng(each).standard_normal(VALUES) for each in (_CLS, *ids)]
    vectors = np.array(rows, np.float32)
    normed: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return normed


class FakePassageTokens:
    """Computes token vectors of passages, and counts them."""

    kind: StatesKind = TOKEN_VECTORS
    fingerprint, width = FINGERPRINT, VALUES

    def __init__(self) -> None:
        self.computed: list[str] = []

    def count_tokens(self, stored: StoredPassage) -> int:
        return 1 + len(stored.title_ids) + len(stored.tokens.ids)

    def levels(self, stored: StoredPassage) -> NDArray[np.int8]:
        self.computed.append(stored.passage.id)
        return quantise_passage(token_vectors((*stored.title_ids, *stored.tokens.ids)))

    def packed(self, stored: StoredPassage) -> bytes:
        return with_checksum(self.levels(stored).tobytes())


def question_tokens(ids: tuple[int, ...]) -> QuestionTokens:
    weights = np.linspace(0.5, 2.0, len(ids) + 1, dtype=np.float32)
    return QuestionTokens(quantise_question(token_vectors(ids)), weights)


def write_token_vectors(shard: Path) -> None:
    """Writes the token vectors of all passages of a generation."""
    StatesWriter(shard, FakePassageTokens()).write(1, lambda *_: None, lambda _: None)


@dataclass
class OpenModel:
    """A model that is open."""

    opened: Any
    closed: threading.Event = field(default_factory=threading.Event)
    """Set once the model was closed."""

    def open(self) -> PassageTokens:
        opened: PassageTokens = self.opened
        return opened

    def close(self) -> None:
        self.closed.set()


def ranking(
    model: FakePassageTokens | None = None, max_computed: int = 1_000, clock: Clock = time.monotonic
) -> LateRanking:
    """A ranking in which late interaction weighs as much as distance and words together."""
    computed = ComputedTokens(max_computed=max_computed, clock=clock)
    scorer = LateScorer(OpenModel(model or FakePassageTokens()), computed)
    return LateRanking(words=0.05, tokens=0.2, scorer=scorer)
