"""Nearest vectors: by graph, or exactly.

Both are hnswlib's, so that the distances of one pair of vectors are equal bit for bit whichever
found them. Squared Euclidean distance throughout.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from typing import Final, Protocol

import hnswlib
import numpy as np
from numpy.typing import NDArray

from winnow.errors import ArtefactError, StoppedError
from winnow.files.opened import OpenFile
from winnow.inference.stop import Stop

SPACE: Final = "l2"
Vectors = NDArray[np.float32]
Chunks = Callable[[], Iterable[Vectors]]
"""Every vector in row order, a number of rows at a time: float32 [rows, dimension] each."""
Found = list[tuple[int, float]]


class NearestIndex(Protocol):
    """Finds rows near a vector. Safe to search from several threads at once."""

    def search(self, vector: Vectors, k: int, stop: Stop | None = None) -> Found:
        """At most `k` (row, squared distance), nearest first; ties by row.

        Raises:
            StoppedError: `stop` was set while vectors were compared.

        """


class ExactIndex:
    """Compares with every vector: right by definition, and fast enough for small shards."""

    def __init__(self, vectors: Vectors) -> None:
        """`vectors` is float32 [rows, dimension]."""
        self._rows, dimension = vectors.shape
        self._index = hnswlib.BFIndex(space=SPACE, dim=dimension)
        self._index.init_index(max_elements=max(self._rows, 1))
        if self._rows:
            self._index.add_items(vectors, np.arange(self._rows))
        self._index.set_num_threads(1)

    def search(self, vector: Vectors, k: int, stop: Stop | None = None) -> Found:
        """At most `k` (row, squared distance), nearest first; ties by row."""
        k = min(k, self._rows)
        return _sorted(*self._index.knn_query(vector, k=k)) if k else []


class GraphIndex:
    """An HNSW graph (Malkov and Yashunin 2016), and the vectors where it leads to too few."""

    def __init__(self, index: hnswlib.Index, ef: int, chunks: Chunks) -> None:
        """`chunks` are read only for questions that the graph cannot answer: that is slow."""
        self._index, self._ef, self._chunks = index, ef, chunks
        self._index.set_ef(ef)  # falls back to 10 on every load
        self._index.set_num_threads(1)

    def search(self, vector: Vectors, k: int, stop: Stop | None = None) -> Found:
        """At most `k` (row, squared distance), nearest first; ties by row."""
        found = self.walk(vector, k)
        return search_chunks(self._chunks(), vector, k, stop) if found is None else found

    def walk(self, vector: Vectors, k: int) -> Found | None:
        """What the graph alone finds; None if fewer than `k` rows can be reached in it.

        hnswlib looks at least `k` wide, whatever `ef` is, and gives up only when it has seen all
        that it can reach: many equal vectors or deleted rows cut a graph in pieces. So a wider
        search would find no more.
        """
        k = min(k, self._index.get_current_count())
        try:
            return _sorted(*self._index.knn_query(vector, k=k, num_threads=1)) if k else []
        except RuntimeError:  # fewer than k
            return None


def search_chunks(
    chunks: Iterable[Vectors], vector: Vectors, k: int, stop: Stop | None = None
) -> Found:
    """The same as `ExactIndex.search` over all chunks, with one of them in memory at a time.

    Raises:
        StoppedError: `stop` was set before the last chunk.

    """
    return nsmallest(k, _each_nearest(chunks, vector, k, stop), key=_by_distance)


def load_graph(file: OpenFile, dimension: int, rows: int, ef: int, chunks: Chunks) -> GraphIndex:
    """Loads a graph whose file was verified into memory; `chunks` are the vectors it was built of.

    Raises:
        ArtefactError: it cannot be read, or does not hold `rows` vectors.

    """
    index = hnswlib.Index(space=SPACE, dim=dimension)
    try:
        index.load_index(str(file.link))
    except (RuntimeError, MemoryError) as error:
        raise ArtefactError(f"{file.path} cannot be loaded: {error}") from error
    if index.get_current_count() != rows:
        raise ArtefactError(
            f"{file.path} holds {index.get_current_count()} vectors, expected {rows}"
        )
    return GraphIndex(index, ef, chunks)


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


def _each_nearest(
    chunks: Iterable[Vectors], vector: Vectors, k: int, stop: Stop | None
) -> Iterator[tuple[int, float]]:
    before = 0
    for chunk in chunks:
        if stop is not None and stop.is_set:
            raise StoppedError("the search was ended")
        for row, distance in ExactIndex(chunk).search(vector, k):
            yield before + row, distance
        before += len(chunk)


def _sorted(rows: NDArray[np.uint64], distances: NDArray[np.float32]) -> Found:
    found = zip(rows[0].tolist(), distances[0].tolist(), strict=True)
    return sorted(found, key=_by_distance)


def _by_distance(found: tuple[int, float]) -> tuple[float, int]:
    row, distance = found
    return distance, row
