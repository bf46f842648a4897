"""Validates what a front node sends to a content node.

Every request that passes can be retrieved and read, so no request ends in INTERNAL.
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
from winnow.text.tokenizer import Tokenizer

MAX_PASSAGES = 1_000
MAX_ANSWER_TOKENS = 256
_SPECIAL_TOKENS = 2
"""Tokens that the encoder adds to a question."""
_RAREST = 100.0
"""Limit of rarities: a word in one passage of the largest possible index has 37."""
_NORM = 0.05
"""Most difference of a vector's norm from one: more than lower precision causes."""


@dataclass(frozen=True, slots=True)
class QuestionLimits:
    """Limits of questions for a bundle's models."""

    tokens: int
    """Most tokens, without special ones."""
    vocabulary: int
    """One more than the greatest token."""

    def check(self, question: EncodedQuestion) -> None:
        """Refuses a question that this bundle's tokenizer and encoder cannot have made."""
        ids = question.token_ids
        if not 1 <= len(ids) <= self.tokens:
            raise _wrong(
                "question.token_ids",
                f"{len(ids)} tokens, the bundle takes at least 1 and at most {self.tokens}",
            )
        if (greatest := max(ids)) >= self.vocabulary:
            raise _wrong(
                "question.token_ids",
                f"{greatest} is not a token of the bundle, which has {self.vocabulary}",
            )
        if (rarest := max(question.rarities, default=0.0)) > _RAREST:
            raise _wrong("question.rarities", f"{rarest:g} is more than {_RAREST:g}")
        norm = float(np.linalg.norm(question.vector.astype(np.float64)))
        if abs(norm - 1.0) > _NORM:
            raise _wrong("question.vector", f"its norm is {norm:.4g}, it must be 1")


def question_limits(bundle: Bundle) -> QuestionLimits:
    """Returns the limits of a bundle; raises ArtefactError if its tokenizer cannot be opened."""
    manifest = bundle.manifest
    max_tokens = min(
        manifest.encoder.max_question_tokens - _SPECIAL_TOKENS, max_question_tokens(manifest.reader)
    )
    return QuestionLimits(max_tokens, Tokenizer(bundle.tokenizer).vocabulary)


def check_passages(count: int, field: str = "passages") -> None:
    """Refuses a number of passages out of range."""
    if not 1 <= count <= MAX_PASSAGES:
        raise _wrong(field, f"{count} is not between 1 and {MAX_PASSAGES}")


def check_depth(depth: RetrievalDepth) -> None:
    """Refuses numbers of candidates out of range, and an invalid filter."""
    check_passages(depth.passages)
    if depth.where:
        parse(depth.where, MAX_CANONICAL)
    for field in ("candidates", "by_words"):
        if (count := getattr(depth, field)) > MAX_PASSAGES:
            raise _wrong(field, f"{count} is more than {MAX_PASSAGES}")


def check_hits(hits: Iterable[Hit]) -> None:
    """Refuses hits that no retrieval can have found: repeated rows, impossible distances."""
    rows = set()
    for place, hit in enumerate(hits):
        if hit.row in rows:
            raise _wrong(f"hits[{place}].row", f"row {hit.row} is there twice")
        rows.add(hit.row)
        if not 0 <= hit.distance < math.inf:
            raise _wrong(f"hits[{place}].distance", f"{hit.distance} is not 0 or more")
        if not math.isfinite(hit.hybrid_distance):
            raise _wrong(f"hits[{place}].hybrid_distance", f"{hit.hybrid_distance} is not finite")
        if not 0 <= hit.words < math.inf:
            raise _wrong(f"hits[{place}].words", f"{hit.words} is not 0 or more")


def check_answer_tokens(tokens: int) -> None:
    """Refuses a length of answers out of range."""
    if not 1 <= tokens <= MAX_ANSWER_TOKENS:
        raise _wrong("max_answer_tokens", f"{tokens} is not between 1 and {MAX_ANSWER_TOKENS}")


def _wrong(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(Violation(field, description))
