"""How the rows of a segment are passed around: as a mask, or one by one with a score."""

import numpy as np
from numpy.typing import NDArray

RowMask = NDArray[np.bool_]
"""Whether each row counts, [rows]."""
RowNumbers = NDArray[np.int64]
ScoredRows = list[tuple[int, float]]
"""Rows, each with its squared distance or its BM25 score."""
