"""Makes vectors and token vectors from tokens, without a model.

Each token has a fixed random vector. The vector of a text is the sum of those of its distinct
tokens, so texts that share words are near each other. This suits measurements of time: encoding a
hundred thousand passages would take an hour, and the time of a retrieval hardly depends on values.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.measuring.synthetic import RandomVectors
from winnow.domain.question import EncodedQuestion, QuestionTokens
from winnow.late_interaction.levels import quantise_passage, quantise_question
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.reading.states_kind import TOKEN_VECTORS, StatesKind, with_checksum
from winnow.reading.stored_passage import StoredPassage

DIMENSION, VALUES = 384, 32
"""Values of a vector and of a token vector, as in the default bundle."""
FINGERPRINT = "word-vectors"


class WordVectors:
    """Vectors and token vectors of texts. It is a `StatesModel` of token vectors."""

    kind: StatesKind = TOKEN_VECTORS
    fingerprint, width = FINGERPRINT, VALUES

    def __init__(self, vocabulary: int) -> None:
        self._vectors = RandomVectors(DIMENSION, seed=1).draw(vocabulary)
        self._token_vectors = RandomVectors(VALUES, seed=2).draw(vocabulary)

    def vector(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Returns the vector of a text with these tokens, float32 [dimension] with norm 1."""
        summed = self._vectors[np.unique(np.array(ids, np.int64))].sum(axis=0)
        unit: NDArray[np.float32] = summed / np.maximum(np.linalg.norm(summed), 1e-6)
        return unit

    def question(self, text: str, ids: Sequence[int]) -> EncodedQuestion:
        """Returns an encoded question with these tokens."""
        weights = np.ones(len(ids), np.float32)
        levels = quantise_question(self._token_vectors[list(ids)])
        return EncodedQuestion(
            text=text,
            token_ids=tuple(ids),
            vector=self.vector(ids),
            bundle_fingerprint=FINGERPRINT,
            tokens=QuestionTokens(levels, weights),
        )

    def count_tokens(self, stored: StoredPassage) -> int:
        """Counts the tokens of a passage that have a token vector."""
        return len(_ids(stored))

    def packed(self, stored: StoredPassage) -> bytes:
        """Returns the token vectors of a passage, in the format on disk."""
        return with_checksum(quantise_passage(self._token_vectors[_ids(stored)]).tobytes())


def _ids(stored: StoredPassage) -> list[int]:
    return [*stored.title_ids[:MAX_TITLE_TOKENS], *stored.tokens.ids]
