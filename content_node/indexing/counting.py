"""How rare words are: counted over a whole index, so that every shard weighs them alike. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Tokens of an index, counted."""

    passages: NDArray[np.uint32]
    """How many passages contain each token, [greatest token + 1]."""
    tokens: int
    """Of all passages together."""

    @property
    def vocabulary(self) -> int:
        """One more than the greatest token."""
        return len(self.passages)


def count_words(passages: Iterable[NDArray[np.uint32]]) -> WordCounts:
    """Counts the tokens of each passage."""
    containing = np.zeros(1, np.uint32)
    total = 0
    for tokens in passages:
        distinct = np.unique(tokens)
        total += len(tokens)
        if len(distinct) and distinct[-1] >= len(containing):
            containing = np.pad(containing, (0, int(distinct[-1]) + 1 - len(containing)))
        containing[distinct] += 1
    return WordCounts(containing, total)
