"""What words in common are worth: BM25 (Robertson and Zaragoza 2009) over tokens. Pure.

Words are the encoder's tokens. Everything is double precision, and the terms of a question are
added one after the other, by ascending token: so a passage has the same score, bit for bit, however
it was found and however the index is cut.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.segment import Terms
from winnow.domain.question import EncodedQuestion
from winnow.text.rarity import rarities as rarity_of

K1, B = 0.9, 0.4
"""How fast a repeated word stops counting, and how much a long passage is held against it: the
values of Anserini for passages (Yang, Fang and Lin 2017).
"""
Floats = NDArray[np.float64]


def room(lengths: NDArray[np.integer], mean_length: float) -> Floats:
    """How many repetitions of a word count half, for passages of these lengths in tokens."""
    relative: Floats = lengths / max(mean_length, 1.0)
    return K1 * (1 - B + B * relative)


def worth(counts: NDArray[np.integer], rooms: Floats, rarity: float) -> Floats:
    """What a term is worth that passages contain so often."""
    times = counts.astype(np.float64)
    return times * (K1 + 1) / (times + rooms) * rarity


def most(rarities: Floats) -> Floats:
    """More than terms are worth in any passage."""
    return rarities * (K1 + 1)


def added(worths: Iterable[Floats], passages: int) -> Floats:
    """The sum over terms, [passages]; in the order given, since another would end in other bits."""
    total = np.zeros(passages)
    for each in worths:
        total += each
    return total


class BuiltRarities:
    """How rare words were, and how long passages, when the index was built."""

    def __init__(self, frequencies: NDArray[np.integer], passages: int, mean_length: float) -> None:
        """`frequencies` are how many of the index's `passages` contain each token, [vocabulary]."""
        having = np.append(frequencies, 0)  # the last: of all other tokens
        self._rarities = rarity_of(having, passages)
        self.mean_length = mean_length

    def terms(self, question: EncodedQuestion) -> Terms:
        """The distinct words of a question, with what it says of them, or as they were counted."""
        return self.weighed(question.token_ids, question.rarities, question.mean_length)

    def weighed(
        self, tokens: Sequence[int], rarities: Sequence[float] = (), mean_length: float = 0.0
    ) -> Terms:
        """The same for tokens, `rarities` of each being given or none at all."""
        ids, first = np.unique(np.array(tokens, np.int64), return_index=True)
        if rarities:
            return Terms(ids, np.array(rarities, np.float64)[first], mean_length)
        places = np.minimum(ids, len(self._rarities) - 1)
        return Terms(ids, self._rarities[places], self.mean_length)
