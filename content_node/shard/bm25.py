"""BM25 (Robertson and Zaragoza 2009): what words in common are worth. Pure.

Words are the encoder's tokens. All figures are in double precision, and the terms of a question are
added by ascending token. So a passage has the same score, bit for bit, however it was found and
however the index is cut.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.domain.question import EncodedQuestion
from winnow.text.rarity import rarities as rarity_of

K1, B = 0.9, 0.4
"""How fast repetitions of a word stop counting, and how much a long passage is penalised:
Anserini's values for passages (Yang, Fang and Lin 2017).
"""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Terms:
    """The distinct words of a question, as tokens."""

    ids: NDArray[np.int64]
    """Ascending, [terms]."""
    rarities: Floats
    """What a match of each is worth, counted over the whole index, [terms]."""
    mean_length: float
    """Mean number of tokens of the index's passages."""


def room(lengths: NDArray[np.integer], mean_length: float) -> Floats:
    """Returns how many repetitions of a word count half, for passages of these lengths in
    tokens.
    """
    relative: Floats = lengths / max(mean_length, 1.0)
    return K1 * (1 - B + B * relative)


def worth(counts: NDArray[np.integer], rooms: Floats, rarity: float) -> Floats:
    """Returns what a term is worth in passages that contain it `counts` times."""
    times = counts.astype(np.float64)
    return times * (K1 + 1) / (times + rooms) * rarity


def most(rarities: Floats) -> Floats:
    """Returns upper bounds of what terms are worth in any passage."""
    return rarities * (K1 + 1)


def added(worths: Iterable[Floats], passages: int) -> Floats:
    """Sums over terms, [passages], in the order given: another order would give other bits."""
    total = np.zeros(passages)
    for each in worths:
        total += each
    return total


class BuiltRarities:
    """How rare words were, and how long passages, when the index was built."""

    def __init__(self, frequencies: NDArray[np.integer], passages: int, mean_length: float) -> None:
        """`frequencies` [vocabulary] count the index's `passages` that contain each token."""
        having = np.append(frequencies, 0)  # the last one stands for all other tokens
        self._rarities = rarity_of(having, passages)
        self.mean_length = mean_length

    def terms(self, question: EncodedQuestion) -> Terms:
        """Returns the distinct words of a question, with its own rarities if it brings some."""
        return self.weighed(question.token_ids, question.rarities, question.mean_length)

    def weighed(
        self, tokens: Sequence[int], rarities: Sequence[float] = (), mean_length: float = 0.0
    ) -> Terms:
        """Returns the distinct words of tokens; `rarities` are for each of them, or empty."""
        ids, first = np.unique(np.array(tokens, np.int64), return_index=True)
        if rarities:
            return Terms(ids, np.array(rarities, np.float64)[first], mean_length)
        places = np.minimum(ids, len(self._rarities) - 1)
        return Terms(ids, self._rarities[places], self.mean_length)
