"""Inverse document frequencies and mean length, for BM25 (Robertson and Zaragoza, 2009). Pure.

Front and content nodes share these two functions, so that their weights agree bit for bit on
processors of one kind.
"""

import numpy as np
from numpy.typing import NDArray


def rarities(containing: NDArray[np.integer], passages: int) -> NDArray[np.float64]:
    """Returns the inverse document frequency of each word; always positive.

    `containing`: number of passages that contain each word. `passages`: number of passages of the
    index, which is at least the greatest of these numbers.
    """
    absent = passages - containing.astype(np.float64)
    inverse: NDArray[np.float64] = np.log1p((absent + 0.5) / (containing + 0.5))
    return inverse


def mean_length(tokens: int, passages: int) -> float:
    """Returns the mean number of tokens of an index's passages, at least 1."""
    return max(tokens / max(passages, 1), 1.0)
