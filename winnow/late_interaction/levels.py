"""Token vectors in integers. Pure.

A token vector has norm 1, so its integers alone determine it: no scale is stored. The levels of
questions are so small that every inner product with a passage's levels is an exact integer in
single precision. So a score depends neither on the order of additions nor on other passages.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

PASSAGE_LEVELS: Final = 127
"""The largest absolute level of a passage's token."""
MAX_VALUES: Final = 64
"""Maximum number of values of a token vector."""
_EXACT = 2**24
"""Single precision represents all integers up to this one."""
_MIN_MAGNITUDE = np.float32(1e-8)


def question_levels(values: int) -> int:
    """Returns the largest absolute level of a question's token of `values` values."""
    return min((_EXACT - 1) // (PASSAGE_LEVELS * values), np.iinfo(np.int16).max)


def quantise_question(vectors: NDArray[np.float32]) -> NDArray[np.int16]:
    """Returns the levels of a question's token vectors of norm 1, [tokens, values]."""
    levels = np.float32(question_levels(vectors.shape[1]))
    return np.rint(vectors.clip(-1, 1) * levels).astype(np.int16)


def quantise_passage(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Returns the levels of a passage's token vectors, [tokens, values].

    Those of a vector with a value that is not finite are 0: it is similar to no token.
    """
    magnitudes = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    finite = np.isfinite(magnitudes)
    if not finite.all():
        vectors, magnitudes = (np.where(finite, each, 0) for each in (vectors, magnitudes))
    scales = np.maximum(magnitudes, _MIN_MAGNITUDE) / np.float32(PASSAGE_LEVELS)
    levels: NDArray[np.int8] = np.rint(vectors / scales).astype(np.int8)
    return levels
