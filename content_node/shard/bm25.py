"""BM25 scores of passages (Robertson and Zaragoza 2009). Pure.

Words are the encoder's tokens. All scores are in double precision, and the terms of a question are
added by ascending token. So a passage has the same score bit for bit, for any search method and any
number of shards.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.domain.question import EncodedQuestion
from winnow.text.rarity import rarities as rarity_of

K1, B = 0.9, 0.4
"""Saturation of repeated words and penalty of long passages: Anserini's values for passages (Yang,
Fang and Lin 2017).
"""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Terms:
    """The distinct tokens of a question, with their weights."""

    ids: NDArray[np.int64]
    """Ascending, [terms]."""
    rarities: Floats
    """Inverse document frequency of each term over the whole index, [terms]."""
    mean_length: float
    """Mean number of tokens of the index's passages."""


def saturation_counts(lengths: NDArray[np.integer], mean_length: float) -> Floats:
    """Returns the count at which a term has half of its maximal score, for passages of `lengths`
    tokens.
    """
    relative: Floats = lengths / max(mean_length, 1.0)
    return K1 * (1 - B + B * relative)


def term_scores(counts: NDArray[np.integer], saturations: Floats, rarity: float) -> Floats:
    """Returns the scores of a term in passages that contain it `counts` times."""
    times = counts.astype(np.float64)
    return times * (K1 + 1) / (times + saturations) * rarity


def single_term_scores(
    counts: NDArray[np.integer], saturations: NDArray[np.float32], rarity: float
) -> NDArray[np.float32]:
    """Returns the scores of a term in single precision, which is faster."""
    times = counts.astype(np.float32)
    times /= times + saturations
    times *= np.float32(rarity * (K1 + 1))
    return times


def max_term_scores(rarities: Floats) -> Floats:
    """Returns an upper bound of each term's score in any passage."""
    return rarities * (K1 + 1)


def sum_terms(scores: Iterable[Floats], passages: int) -> Floats:
    """Adds the scores of terms, each [passages], in this order: another order changes the bits."""
    total = np.zeros(passages)
    for each in scores:
        total += each
    return total


class Rarities(Protocol):
    """The weights of words in the passages of a view."""

    def terms(self, question: EncodedQuestion) -> Terms:
        """Returns the terms of a question, with the rarities of the question if it has some."""


class BuiltRarities:
    """Rarities of tokens and mean length of passages, as counted when the index was built."""

    def __init__(self, frequencies: NDArray[np.integer], passages: int, mean_length: float) -> None:
        """`frequencies` [vocabulary] count the index's `passages` that contain each token."""
        padded = np.append(frequencies, 0)  # the last one stands for tokens beyond the vocabulary
        # a node may have hundreds of shards, and rarities would take eight bytes for each token
        self._frequencies = padded.astype(np.min_scalar_type(padded.max()))
        self._passages, self.mean_length = passages, mean_length

    def terms(self, question: EncodedQuestion) -> Terms:
        """Returns the terms of a question, with the rarities of the question if it has some."""
        return self.terms_of_tokens(question.token_ids, question.rarities, question.mean_length)

    def terms_of_tokens(
        self, tokens: Sequence[int], rarities: Sequence[float] = (), mean_length: float = 0.0
    ) -> Terms:
        """Returns the distinct tokens as terms; `rarities` are one for each token, or empty."""
        ids, first = np.unique(np.array(tokens, np.int64), return_index=True)
        if rarities:
            return Terms(ids, np.array(rarities, np.float64)[first], mean_length)
        known_ids = np.minimum(ids, len(self._frequencies) - 1)
        frequencies = self._frequencies[known_ids].astype(np.int64)
        return Terms(ids, rarity_of(frequencies, self._passages), self.mean_length)
