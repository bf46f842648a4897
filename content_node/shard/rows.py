"""Types for rows of a segment."""

import numpy as np
from numpy.typing import NDArray

RowMask = NDArray[np.bool_]
"""Whether each row is selected, [rows]."""
RowNumbers = NDArray[np.int64]
ScoredRows = list[tuple[int, float]]
"""Rows, each with its squared distance or its BM25 score."""
