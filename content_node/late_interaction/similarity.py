"""Scores of passages by late interaction (ColBERT: Khattab and Zaharia 2020). Pure.

The score of a passage is a weighted sum over the tokens of the question: the largest inner product
with any token of the passage. All passages are scored in a few array operations. Inner products of
levels are exact integers, and all later operations are element by element. So a score has the same
bits, whichever passages are scored with it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.domain.question import QuestionTokens
from winnow.late_interaction.levels import question_levels

_SINGLE_THREAD = 2**18
"""Maximum number of multiplications in one matrix product, below which OpenBLAS uses one thread.

Its other threads would compete with the reader's.
"""
_CHUNK_TOKENS = 2**16
"""Passage tokens that are scored together, which bounds the memory to some 20 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class PassageVectors:
    """Levels of the token vectors of several passages, passage after passage."""

    levels: NDArray[np.int8]
    """[tokens, values]."""
    lengths: NDArray[np.int64]
    """Number of tokens of each passage, at least 1, [passages]."""


def late_scores(question: QuestionTokens, passages: PassageVectors) -> NDArray[np.float64]:
    """Returns the score of each passage, [passages]."""
    ends = np.cumsum(passages.lengths)
    if not len(ends):
        return np.zeros(0)
    scores = []
    first, first_token = 0, 0
    while first < len(ends):
        # at least one passage, and as many more as fit
        end = max(int(np.searchsorted(ends, first_token + _CHUNK_TOKENS, "right")), first + 1)
        levels = passages.levels[first_token : int(ends[end - 1])]
        scores.append(_score_passages(question, levels, ends[first:end] - first_token))
        first, first_token = end, int(ends[end - 1])
    return np.concatenate(scores)


def _score_passages(
    question: QuestionTokens, levels: NDArray[np.int8], ends: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Scores the passages whose tokens end at `ends`."""
    tokens, values = question.levels.shape
    rows = max(_SINGLE_THREAD // (tokens * values), 1)
    products = -(-len(levels) // rows)
    padded = np.empty((products * rows, values), np.float32)
    padded[: len(levels)] = levels
    padded[len(levels) :] = 0
    stacked = padded.reshape(products, rows, values)
    transposed = np.ascontiguousarray(question.levels.T, np.float32)
    by_passage_token = (stacked @ transposed).reshape(-1, tokens)[: len(levels)]
    # with a row for each token of the question, numpy divides and finds maxima twice as fast
    similarities = np.ascontiguousarray(by_passage_token.T)
    own = padded[: len(levels)]
    similarities /= np.sqrt(np.maximum(np.einsum("tv,tv->t", own, own), np.float32(1)))
    starts = np.concatenate([[0], ends[:-1]])
    best = np.maximum.reduceat(similarities, starts, axis=1).astype(np.float64)
    weights = question.weights.astype(np.float64) / question_levels(values)
    scores = np.zeros(len(ends))
    for token in range(tokens):  # in a fixed order, so that rounding is the same for all passages
        scores += weights[token] * best[token]
    return scores
