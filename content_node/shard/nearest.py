"""Nearest vectors: by graph, or exactly.

Both are hnswlib's, so that the distances of one pair of vectors are equal bit for bit whichever
found them. Squared Euclidean distance throughout.
"""

from pathlib import Path
from typing import Protocol

import hnswlib
import numpy as np
from numpy.typing import NDArray

from winnow.errors import ArtefactError

SPACE = "l2"
Found = list[tuple[int, float]]


class NearestIndex(Protocol):
    """Finds rows near a vector. Safe to search from several threads at once."""

    def search(self, vector: NDArray[np.float32], k: int) -> Found:
        """At most `k` (row, squared distance), nearest first; ties by row."""


class ExactIndex:
    """Compares with every vector: right by definition, and fast enough for small shards."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        """`vectors` is float32 [rows, dimension]."""
        self._rows, dimension = vectors.shape
        self._index = hnswlib.BFIndex(space=SPACE, dim=dimension)
        self._index.init_index(max_elements=max(self._rows, 1))
        if self._rows:
            self._index.add_items(vectors, np.arange(self._rows))
        self._index.set_num_threads(1)

    def search(self, vector: NDArray[np.float32], k: int) -> Found:
        """At most `k` (row, squared distance), nearest first; ties by row."""
        k = min(k, self._rows)
        return _sorted(*self._index.knn_query(vector, k=k)) if k else []


class GraphIndex:
    """An HNSW graph (Malkov and Yashunin 2016)."""

    def __init__(self, index: hnswlib.Index, ef: int) -> None:
        self._index, self._ef = index, ef
        self._index.set_ef(ef)  # falls back to 10 on every load
        self._index.set_num_threads(1)

    def search(self, vector: NDArray[np.float32], k: int) -> Found:
        """At most `k` (row, squared distance), nearest first; ties by row."""
        k = min(k, self._index.get_current_count(), self._ef)
        return _sorted(*self._index.knn_query(vector, k=k, num_threads=1)) if k else []


def load_graph(path: Path, dimension: int, rows: int, ef: int) -> GraphIndex:
    """Loads a graph whose file was verified.

    Raises:
        ArtefactError: it cannot be read, or does not hold `rows` vectors.

    """
    index = hnswlib.Index(space=SPACE, dim=dimension)
    try:
        index.load_index(str(path))
    except RuntimeError as error:
        raise ArtefactError(f"{path} cannot be loaded: {error}") from error
    if index.get_current_count() != rows:
        raise ArtefactError(f"{path} holds {index.get_current_count()} vectors, expected {rows}")
    return GraphIndex(index, ef)


def build_graph(
    vectors: NDArray[np.float32], m: int, ef_construction: int, threads: int
) -> hnswlib.Index:
    """A graph over float32 [rows, dimension], labelled by row. Uses `threads` threads."""
    rows, dimension = vectors.shape
    index = hnswlib.Index(space=SPACE, dim=dimension)
    index.init_index(max_elements=max(rows, 1), M=m, ef_construction=ef_construction)
    if rows:
        index.add_items(vectors, np.arange(rows), num_threads=threads)
    return index


def _sorted(rows: NDArray[np.uint64], distances: NDArray[np.float32]) -> Found:
    found = zip(rows[0].tolist(), distances[0].tolist(), strict=True)
    return sorted(found, key=lambda pair: (pair[1], pair[0]))
