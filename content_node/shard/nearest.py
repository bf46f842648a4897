"""Searches nearest vectors, by graph or exactly.

Both searches compute the same distance of two vectors, bit for bit: where there are graphs, hnswlib
computes both. All distances are squared Euclidean distances.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.comparing import vector_table
from winnow.content_node.shard.equal_passages import EqualPassages
from winnow.content_node.shard.hnsw import Graph, new_graph
from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.rows import RowMask, RowNumbers, ScoredRows
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.huge_pages import huge_pages
from winnow.inference.stop_signal import StopSignal

Vector = NDArray[np.float32]
"""[dimension]."""
Vectors = NDArray[np.float32]
"""[vectors, dimension]."""
_EXTRA_FOR_TIES = 4
"""Neighbours fetched beyond `k`, to find ties with the last one: some texts occur twice."""
READS_PER_NEIGHBOUR = 0.7
"""Vectors that can be read and compared in the time that a graph needs for one more neighbour.
Measured by `python bench/masked.py` at commit 977ccf2.
"""
_MARGIN_DEVIATIONS = 3.0
"""A filtered search fetches the mean number of needed neighbours plus this number of standard
deviations.
"""


class VectorSource(Protocol):
    """Vectors by row, from memory or disk."""

    def read(self, rows: RowNumbers) -> Vectors:
        """Returns the vectors of rows: float32 [rows, dimension]."""

    def chunks(self, rows: RowNumbers) -> Iterable[tuple[RowNumbers, Vectors]]:
        """Yields rows and their vectors, a number of rows at a time."""


class NearestIndex(Protocol):
    """Finds rows near a vector. Safe to search from several threads at once."""

    def search(
        self, vector: Vector, k: int, allowed: RowMask | None = None, stop: StopSignal | None = None
    ) -> ScoredRows:
        """Returns at most `k` allowed rows with squared distances, nearest first, ties by row.

        Raises:
            StoppedError: `stop` was set while vectors were compared.

        """

    def nearest(
        self, vector: Vector, k: int, allowed: RowMask | None = None, stop: StopSignal | None = None
    ) -> ScoredRows:
        """Returns the result of `search` and all other rows at the distance of its last row."""


class ExactIndex:
    """Compares with every vector: exact by definition, and fast enough for small shards."""

    def __init__(self, vectors: Vectors, rows: RowNumbers | None = None) -> None:
        """`vectors` is float32 [rows, dimension]; `rows` has their numbers, by default from 0."""
        self._rows = np.arange(len(vectors)) if rows is None else rows
        self._dimension = vectors.shape[1]
        self._table = vector_table(vectors, self._rows)

    def search(
        self, vector: Vector, k: int, allowed: RowMask | None = None, stop: StopSignal | None = None
    ) -> ScoredRows:
        excluded = 0 if allowed is None else int(np.count_nonzero(~allowed[self._rows]))
        return _sort_allowed_rows(
            *self._query(vector, min(k + excluded, len(self._rows))), allowed, k
        )

    def nearest(
        self, vector: Vector, k: int, allowed: RowMask | None = None, stop: StopSignal | None = None
    ) -> ScoredRows:
        return _with_ties(lambda more: self.search(vector, more, allowed, stop), k)

    def compare(self, vector: Vector) -> tuple[NDArray[np.integer], Vectors]:
        """Returns all rows with their squared distances, in any order."""
        return self._query(vector, len(self._rows))

    def _query(self, vector: Vector, k: int) -> tuple[NDArray[np.integer], Vectors]:
        if len(vector) != self._dimension:  # hnswlib would read beyond it
            raise ValueError(f"the vector has {len(vector)} values, expected {self._dimension}")
        if not k:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return self._table.nearest(vector, k)


class GraphIndex:
    """Searches an HNSW graph (Malkov and Yashunin 2016), or the vectors if that is better."""

    def __init__(
        self,
        index: Graph,
        ef: int,
        vectors: VectorSource,
        *,
        occupied_rows: RowMask | None = None,
        reads_per_neighbour: float = READS_PER_NEIGHBOUR,
        equal: EqualPassages = EqualPassages(),  # noqa: B008 (immutable)
    ) -> None:
        """`occupied_rows` are the rows that hold a vector; None for all.

        `vectors` are compared directly if the graph finds too few rows, or if this takes less time
        than the graph according to `reads_per_neighbour`. The graph has to find only one row of
        each group in `equal`.
        """
        self._index, self._vectors, self._equal = index, vectors, equal
        self._reads_per_neighbour = reads_per_neighbour
        self._occupied_rows = (
            np.ones(index.get_current_count(), np.bool_) if occupied_rows is None else occupied_rows
        )
        self._count = int(np.count_nonzero(self._occupied_rows))
        self._index.set_ef(ef)  # hnswlib resets it to 10 on every load
        self._index.set_num_threads(1)

    def search(
        self, vector: Vector, k: int, allowed: RowMask | None = None, stop: StopSignal | None = None
    ) -> ScoredRows:
        if allowed is None:
            found = self.search_graph(vector, k)
            if found is None:
                return self._search_exactly(vector, k, self._occupied_rows, stop)
            return found
        return self._search_filtered(vector, k, allowed & self._occupied_rows, stop)[:k]

    def nearest(
        self, vector: Vector, k: int, allowed: RowMask | None = None, stop: StopSignal | None = None
    ) -> ScoredRows:
        if not self._equal:
            return _with_ties(lambda more: self.search(vector, more, allowed, stop), k)
        occupied = self._occupied_rows if allowed is None else allowed & self._occupied_rows
        return _with_ties(
            lambda more: self._search_filtered(vector, more, occupied, stop),
            k,
            self._equal.contains_all,
        )

    def search_graph(self, vector: Vector, k: int) -> ScoredRows | None:
        """Returns the rows that the graph alone finds; None if it reaches fewer than `k` rows.

        Many equal vectors or deleted rows divide a graph. hnswlib searches at least `k` wide, even
        if `ef` is less, and gives up only after all rows that it can reach. So a wider search would
        find no more.
        """
        found = self._query_graph(vector, k)
        return None if found is None else _sort_allowed_rows(*found, None)

    def _query_graph(self, vector: Vector, k: int) -> tuple[NDArray[np.integer], Vectors] | None:
        k = min(k, self._count)
        if not k:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        try:
            rows, distances = self._index.knn_query(vector, k=k, num_threads=1)
        except RuntimeError:  # fewer than k
            return None
        return rows[0], distances[0]

    def _search_filtered(
        self, vector: Vector, k: int, allowed: RowMask, stop: StopSignal | None
    ) -> ScoredRows:
        """Searches the graph wider and wider until at least `k` allowed rows are found. Compares
        with all allowed rows if that takes less time.
        """
        count = int(np.count_nonzero(allowed))
        k = min(k, count)
        fetch = neighbours_to_fetch(k, self._equal.count_reachable(allowed), self._count)
        while fetch * self._reads_per_neighbour < count:
            reached = self._query_graph(vector, fetch)
            if reached is None:
                break
            found = _sort_allowed_rows(*self._equal.add_equal_rows(*reached), allowed)
            if len(found) >= k:
                return found
            fetch *= 4  # allowed rows are farther away than others
        exact = self._search_exactly(vector, k, allowed, stop)
        rows = np.array([row for row, _ in exact], np.int64)
        distances = np.array([distance for _, distance in exact], np.float32)
        return _sort_allowed_rows(*self._equal.add_equal_rows(rows, distances), allowed)

    def _search_exactly(
        self, vector: Vector, k: int, allowed: RowMask, stop: StopSignal | None
    ) -> ScoredRows:
        return search_chunks(self._vectors.chunks(np.flatnonzero(allowed)), vector, k, stop)


def neighbours_to_fetch(k: int, allowed: int, rows: int) -> int:
    """Returns the number of neighbours of which most likely at least `k` are allowed.

    Of all `rows` rows, `allowed` are allowed. They are assumed to be spread evenly over distances.
    """
    return math.ceil((k + _MARGIN_DEVIATIONS * math.sqrt(k)) * rows / max(allowed, 1))


def search_chunks(
    chunks: Iterable[tuple[RowNumbers, Vectors]],
    vector: Vector,
    k: int,
    stop: StopSignal | None = None,
) -> ScoredRows:
    """Searches all chunks exactly, with one chunk in memory at a time.

    Raises:
        StoppedError: `stop` was set before the last chunk.

    """
    return nsmallest(k, _nearest_of_chunks(chunks, vector, k, stop), key=by_distance)


def compute_distances(source: VectorSource, vector: Vector, rows: Sequence[int]) -> Vectors:
    """Returns squared distances of rows, [rows], bit for bit as indexes return them."""
    distances = np.empty(len(rows), np.float32)
    if len(rows):
        indices, found = ExactIndex(source.read(np.array(rows, np.int64))).compare(vector)
        distances[indices] = found
    return distances


def load_graph(
    file: OpenFile,
    dimension: int,
    rows: int,
    ef: int,
    vectors: VectorSource,
    occupied_rows: RowMask | None = None,
    equal: EqualPassages = EqualPassages(),  # noqa: B008 (immutable)
) -> GraphIndex:
    """Loads a graph from a verified file. `vectors` are the vectors in the graph, the other
    parameters those of `GraphIndex`.

    Raises:
        ArtefactError: the file cannot be read, does not hold `rows` vectors, or hnswlib is not
            installed.

    """
    index = new_graph(dimension)
    try:
        with huge_pages():
            index.load_index(str(file.link))
    except (RuntimeError, MemoryError) as error:
        raise ArtefactError(f"{file.path} cannot be loaded: {error}") from error
    if index.get_current_count() != rows:
        raise ArtefactError(
            f"{file.path} holds {index.get_current_count()} vectors, expected {rows}"
        )
    return GraphIndex(index, ef, vectors, occupied_rows=occupied_rows, equal=equal)


def build_graph(vectors: NDArray[np.float32], m: int, ef_construction: int, threads: int) -> Graph:
    """Builds a graph of float32 [rows, dimension] vectors, labelled by row."""
    rows, dimension = vectors.shape
    index = new_graph(dimension)
    index.init_index(max_elements=max(rows, 1), M=m, ef_construction=ef_construction)
    if rows:
        index.add_items(vectors, np.arange(rows), num_threads=threads)
    return index


def by_distance(scored_row: tuple[int, float]) -> tuple[float, int]:
    """Returns the sort key of a row and its distance: distance, then row."""
    row, distance = scored_row
    return distance, row


def _nearest_of_chunks(
    chunks: Iterable[tuple[RowNumbers, Vectors]], vector: Vector, k: int, stop: StopSignal | None
) -> Iterator[tuple[int, float]]:
    for rows, vectors in chunks:
        check_stop(stop)
        yield from ExactIndex(vectors, rows).search(vector, k)


def _with_ties(
    search: Callable[[int], ScoredRows],
    k: int,
    is_complete: Callable[[Sequence[int]], bool] | None = None,
) -> ScoredRows:
    """Returns the `k` nearest rows, and all other rows at the distance of the last one.

    `search` returns at least the requested number of rows, if there are enough. `is_complete` gets
    the found rows at one distance, and returns whether no other row has this distance.
    """
    extra = 0 if is_complete else _EXTRA_FOR_TIES
    while k:
        found = search(k + extra)
        furthest = found[:k][-1][1] if found else 0.0
        near = [pair for pair in found if pair[1] <= furthest]
        if len(found) < k + extra or len(near) < len(found):
            return near
        if is_complete and is_complete([row for row, distance in near if distance == furthest]):
            return near
        extra = max(4 * extra, _EXTRA_FOR_TIES)
    return []


def _sort_allowed_rows(
    rows: NDArray[np.integer], distances: Vectors, allowed: RowMask | None, limit: int | None = None
) -> ScoredRows:
    """Returns at most `limit` allowed rows with their distances, nearest first."""
    if allowed is not None:
        is_allowed = allowed[rows]
        rows, distances = rows[is_allowed], distances[is_allowed]
    order = np.lexsort((rows, distances))[:limit]
    return list(zip(rows[order].tolist(), distances[order].tolist(), strict=True))
