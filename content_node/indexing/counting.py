"""Counts the words of an index, so that a word has the same weight in every shard. Pure."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from winnow.domain.word_counts import WordCounts


def count_words(passages: Iterable[NDArray[np.uint32]]) -> WordCounts:
    """Counts the passages that contain each token; `passages` yields the tokens of each passage."""
    frequencies = np.zeros(1, np.uint32)
    total_tokens = total_passages = 0
    for tokens in passages:
        total_passages += 1
        total_tokens += len(tokens)
        distinct = np.unique(tokens)
        if len(distinct) and distinct[-1] >= len(frequencies):
            frequencies = np.pad(frequencies, (0, int(distinct[-1]) + 1 - len(frequencies)))
        frequencies[distinct] += 1
    return WordCounts(frequencies, total_tokens, total_passages)
