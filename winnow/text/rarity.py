"""How rare words are, as BM25 weighs them (Robertson and Zaragoza 2009).

Front and content nodes calculate it by the same two functions, so that a match is worth the same on
both: bit for bit on one processor. Pure.
"""

import numpy as np
from numpy.typing import NDArray


def rarities(containing: NDArray[np.integer], passages: int) -> NDArray[np.float64]:
    """The worth of a match of each word, above 0: the more passages contain it, the less.

    `containing`: number of passages that contain each word; `passages`: number of passages of the
    index, at least the greatest of these.
    """
    absent = passages - containing.astype(np.float64)
    worth: NDArray[np.float64] = np.log1p((absent + 0.5) / (containing + 0.5))
    return worth


def mean_length(tokens: int, passages: int) -> float:
    """Mean number of tokens of an index's passages, 1 or more."""
    return max(tokens / max(passages, 1), 1.0)
