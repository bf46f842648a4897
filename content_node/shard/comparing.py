"""Compares a vector with every vector of a table, in hnswlib or, without it, in NumPy.

All distances are squared Euclidean distances. The distance of two vectors is the same, bit for bit,
in every table of one process. hnswlib and NumPy add in another order, so their last bits differ.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard import hnsw

_CHUNK_ROWS = 256
"""Rows whose differences are in memory at a time, to stay in the processor's cache."""


class VectorTable(Protocol):
    """Vectors with their row numbers. Safe to search from several threads at once."""

    def nearest(
        self, vector: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
        """Returns the `k` nearest rows and their distances, in any order; of ties the first rows.

        `vector` has the dimension of the table, and `k` is from 1 to the number of its rows.
        """


def vector_table(vectors: NDArray[np.float32], rows: NDArray[np.int64]) -> VectorTable:
    """Returns a table of float32 [rows, dimension] `vectors`; `rows` has their numbers."""
    table = HnswlibTable if hnsw.can_use_graphs() else NumpyTable
    return table(vectors, rows)


class HnswlibTable:
    """A table in hnswlib, which computes distances as its graphs do."""

    def __init__(self, vectors: NDArray[np.float32], rows: NDArray[np.int64]) -> None:
        self._table = hnsw.module.BFIndex(space=hnsw.SPACE, dim=vectors.shape[1])
        self._table.init_index(max_elements=max(len(vectors), 1))
        if len(vectors):
            self._table.add_items(vectors, rows)
        self._table.set_num_threads(1)

    def nearest(
        self, vector: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
        rows, distances = self._table.knn_query(vector, k=k)
        return rows[0], distances[0]


class NumpyTable:
    """A table in NumPy."""

    def __init__(self, vectors: NDArray[np.float32], rows: NDArray[np.int64]) -> None:
        self._vectors, self._rows = vectors, rows

    def nearest(
        self, vector: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
        distances = np.empty(len(self._rows), np.float32)
        for start in range(0, len(distances), _CHUNK_ROWS):
            chunk = slice(start, start + _CHUNK_ROWS)
            differences = self._vectors[chunk] - vector
            np.einsum("ij,ij->i", differences, differences, out=distances[chunk])
        nearest = np.flatnonzero(distances <= np.partition(distances, k - 1)[k - 1])
        if len(nearest) > k:
            order = np.lexsort((self._rows[nearest], distances[nearest]))
            nearest = nearest[order[:k]]
        return self._rows[nearest], distances[nearest]
