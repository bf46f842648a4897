"""Validates the questions of front nodes by a content node's bundle."""

from dataclasses import dataclass

import numpy as np

from winnow.bundle import Bundle
from winnow.domain.question import EncodedQuestion, QuestionTokens
from winnow.errors import invalid_field
from winnow.late_interaction.levels import question_levels
from winnow.reading.model import max_question_tokens
from winnow.text.encoder import SPECIAL_TOKENS
from winnow.text.tokenizer import Tokenizer

_MAX_RARITY = 100.0
"""Maximum rarity of a word. A word in one passage of the largest possible index has 37."""
_MAX_NORM_ERROR = 0.05
"""Maximum difference of a vector's norm from one: more than low precision causes."""


@dataclass(frozen=True, slots=True)
class QuestionLimits:
    """Limits of questions for a bundle's models."""

    max_tokens: int
    """Maximum number of tokens, without special ones."""
    vocabulary: int
    """Number of tokens in the vocabulary; token ids are below it."""
    token_values: int = 0
    """Number of values of a token vector; 0 without late interaction."""

    def check(self, question: EncodedQuestion) -> None:
        """Refuses a question that this bundle's tokenizer and encoder cannot produce."""
        ids = question.token_ids
        if not 1 <= len(ids) <= self.max_tokens:
            raise invalid_field(
                "question.token_ids",
                f"it has {len(ids)} tokens, the bundle allows 1 to {self.max_tokens}",
            )
        if (max_id := max(ids)) >= self.vocabulary:
            raise invalid_field(
                "question.token_ids",
                f"{max_id} is not a token id: the bundle has {self.vocabulary} tokens",
            )
        if (max_rarity := max(question.rarities, default=0.0)) > _MAX_RARITY:
            raise invalid_field("question.rarities", f"{max_rarity:g} is more than {_MAX_RARITY:g}")
        if question.tokens is not None:
            self._check_tokens(question.tokens, len(ids))
        norm = float(np.linalg.norm(question.vector.astype(np.float64)))
        if abs(norm - 1.0) > _MAX_NORM_ERROR:
            raise invalid_field("question.vector", f"its norm is {norm:.4g}, it must be 1")

    def _check_tokens(self, tokens: QuestionTokens, ids: int) -> None:
        """Refuses token vectors that do not fit the bundle or the question."""
        expected = (ids + SPECIAL_TOKENS, self.token_values)
        if tokens.levels.shape != expected:
            raise invalid_field(
                "question.token_levels",
                f"its shape is {tokens.levels.shape}, the bundle and the question need {expected}",
            )
        if np.abs(tokens.levels.astype(np.int32)).max() > question_levels(self.token_values):
            raise invalid_field("question.token_levels", "a level is too large")


def question_limits(bundle: Bundle) -> QuestionLimits:
    """Returns the limits of a bundle; raises ArtefactError if its tokenizer cannot be opened."""
    manifest = bundle.manifest
    max_tokens = min(
        manifest.encoder.max_question_tokens - SPECIAL_TOKENS, max_question_tokens(manifest.reader)
    )
    late = manifest.late_interaction
    return QuestionLimits(
        max_tokens, Tokenizer(bundle.tokenizer).vocabulary, late.values if late else 0
    )
