"""Word counts of a whole index, so that every shard gives a word the same weight. Pure."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from winnow.domain.word_counts import WordCounts


def count_words(passages: Iterable[NDArray[np.uint32]]) -> WordCounts:
    """Counts the passages that have each token, given the tokens of each passage."""
    containing = np.zeros(1, np.uint32)
    total = number = 0
    for tokens in passages:
        number += 1
        distinct = np.unique(tokens)
        total += len(tokens)
        if len(distinct) and distinct[-1] >= len(containing):
            containing = np.pad(containing, (0, int(distinct[-1]) + 1 - len(containing)))
        containing[distinct] += 1
    return WordCounts(containing, total, number)
