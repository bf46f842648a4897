"""Vectors in memory, by row."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


class MemoryVectors:
    """The rows of an array: what `content_node.shard.nearest` compares with."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        """`vectors` is float32 [rows, dimension]."""
        self._vectors = vectors

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of rows."""
        return self._vectors[rows]

    def chunks(
        self, rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """The vectors of rows, with these rows, all at once."""
        if len(rows):
            yield rows, self._vectors[rows]
