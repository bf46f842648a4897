"""Validates requests of front nodes to a content node.

Every valid request can be answered, so no request fails with INTERNAL.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from winnow.bundle import Bundle
from winnow.content_node.reader.model import max_question_tokens
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.errors import InvalidRequestError, Violation
from winnow.filtering import MAX_CANONICAL, parse
from winnow.searcher import MAX_CALL_SHARDS
from winnow.text.tokenizer import Tokenizer

MAX_PASSAGES = 1_000
MAX_ANSWER_TOKENS = 256
_SPECIAL_TOKENS = 2
"""Tokens that the encoder adds to a question."""
_MAX_RARITY = 100.0
"""A word in one passage of the largest possible index has a rarity of 37."""
_MAX_NORM_ERROR = 0.05
"""Maximum difference of a vector's norm from one: more than low precision causes."""


@dataclass(frozen=True, slots=True)
class QuestionLimits:
    """Limits of questions for a bundle's models."""

    max_tokens: int
    """Maximum number of tokens, without special ones."""
    vocabulary: int
    """Number of tokens in the vocabulary; token ids are below it."""

    def check(self, question: EncodedQuestion) -> None:
        """Refuses a question that this bundle's tokenizer and encoder cannot produce."""
        ids = question.token_ids
        if not 1 <= len(ids) <= self.max_tokens:
            raise _invalid(
                "question.token_ids",
                f"it has {len(ids)} tokens, the bundle allows 1 to {self.max_tokens}",
            )
        if (max_id := max(ids)) >= self.vocabulary:
            raise _invalid(
                "question.token_ids",
                f"{max_id} is not a token of the bundle, which has {self.vocabulary}",
            )
        if (max_rarity := max(question.rarities, default=0.0)) > _MAX_RARITY:
            raise _invalid("question.rarities", f"{max_rarity:g} is more than {_MAX_RARITY:g}")
        norm = float(np.linalg.norm(question.vector.astype(np.float64)))
        if abs(norm - 1.0) > _MAX_NORM_ERROR:
            raise _invalid("question.vector", f"its norm is {norm:.4g}, it must be 1")


def question_limits(bundle: Bundle) -> QuestionLimits:
    """Returns the limits of a bundle; raises ArtefactError if its tokenizer cannot be opened."""
    manifest = bundle.manifest
    max_tokens = min(
        manifest.encoder.max_question_tokens - _SPECIAL_TOKENS, max_question_tokens(manifest.reader)
    )
    return QuestionLimits(max_tokens, Tokenizer(bundle.tokenizer).vocabulary)


def check_passages(count: int, field: str = "passages") -> None:
    """Refuses a number of passages that is out of range; `field` is its name in the request."""
    if not 1 <= count <= MAX_PASSAGES:
        raise _invalid(field, f"{count} is not between 1 and {MAX_PASSAGES}")


def check_shards(count: int) -> None:
    """Refuses a number of shards of one call that is out of range."""
    if not 1 <= count <= MAX_CALL_SHARDS:
        raise _invalid("shards", f"{count} is not between 1 and {MAX_CALL_SHARDS}")


def check_depth(depth: RetrievalDepth) -> None:
    """Refuses an invalid filter, and numbers of candidates that are out of range."""
    check_passages(depth.passages)
    if depth.where:
        parse(depth.where, MAX_CANONICAL)
    for field in ("candidates", "by_words"):
        if (count := getattr(depth, field)) > MAX_PASSAGES:
            raise _invalid(field, f"{count} is more than {MAX_PASSAGES}")


def check_hits(hits: Iterable[Hit]) -> None:
    """Refuses hits that no retrieval returns: repeated rows, impossible distances."""
    rows = set()
    for index, hit in enumerate(hits):
        if hit.row in rows:
            raise _invalid(f"hits[{index}].row", f"row {hit.row} occurs twice")
        rows.add(hit.row)
        if not 0 <= hit.distance < math.inf:
            raise _invalid(f"hits[{index}].distance", f"{hit.distance} is not 0 or more")
        if not math.isfinite(hit.hybrid_distance):
            raise _invalid(f"hits[{index}].hybrid_distance", f"{hit.hybrid_distance} is not finite")
        if not 0 <= hit.words < math.inf:
            raise _invalid(f"hits[{index}].words", f"{hit.words} is not 0 or more")


def check_answer_tokens(tokens: int) -> None:
    """Refuses a maximum answer length that is out of range."""
    if not 1 <= tokens <= MAX_ANSWER_TOKENS:
        raise _invalid("max_answer_tokens", f"{tokens} is not between 1 and {MAX_ANSWER_TOKENS}")


def _invalid(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(Violation(field, description))
