"""Nearest vectors: by graph, or exactly.

Both use hnswlib, so the distance of two vectors is the same bit for bit, whichever found it. All
distances are squared Euclidean ones.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import Final, Protocol

import hnswlib
import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.equal_passages import EqualPassages
from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.rows import RowMask, RowNumbers, ScoredRows
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.inference.stop import Stop

SPACE: Final = "l2"
Vectors = NDArray[np.float32]
_EQUALS = 4
"""Passages fetched beyond the `k` that are wanted, to see whether they are as near as the last one:
now and then a text is there twice.
"""
WALKED = 0.7
"""Vectors that can be read and compared in the time that a graph needs for one more neighbour.
Measured by `python bench/masked.py` at commit 977ccf2.
"""
_SPREAD = 3.0
"""Standard deviations fetched beyond the mean that is needed, if allowed rows lie near and far
alike.
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
        self, vector: Vectors, k: int, allowed: RowMask | None = None, stop: Stop | None = None
    ) -> ScoredRows:
        """Returns at most `k` of the allowed rows with squared distances, nearest first; ties by
        row.

        Raises:
            StoppedError: `stop` was set while vectors were compared.

        """

    def nearest(
        self, vector: Vectors, k: int, allowed: RowMask | None = None, stop: Stop | None = None
    ) -> ScoredRows:
        """As `search`, and adds all rows that are as near as the last of them."""


class ExactIndex:
    """Compares with every vector: right by definition, and fast enough for small shards."""

    def __init__(self, vectors: Vectors, rows: RowNumbers | None = None) -> None:
        """`vectors` is float32 [vectors, dimension], of `rows`, or else of rows 0, 1, 2 and
        so on.
        """
        self._rows = np.arange(len(vectors)) if rows is None else rows
        self._dimension = vectors.shape[1]
        self._index = hnswlib.BFIndex(space=SPACE, dim=self._dimension)
        self._index.init_index(max_elements=max(len(vectors), 1))
        if len(vectors):
            self._index.add_items(vectors, self._rows)
        self._index.set_num_threads(1)

    def search(
        self, vector: Vectors, k: int, allowed: RowMask | None = None, stop: Stop | None = None
    ) -> ScoredRows:
        others = 0 if allowed is None else int(np.count_nonzero(~allowed[self._rows]))
        return _pairs(*self._nearest(vector, min(k + others, len(self._rows))), allowed, k)

    def nearest(
        self, vector: Vectors, k: int, allowed: RowMask | None = None, stop: Stop | None = None
    ) -> ScoredRows:
        return _with_ties(lambda more: self.search(vector, more, allowed, stop), k)

    def _nearest(self, vector: Vectors, k: int) -> tuple[NDArray[np.uint64], Vectors]:
        if len(vector) != self._dimension:  # hnswlib would read beyond it
            raise ValueError(f"a vector of {len(vector)} values, not {self._dimension}")
        if not k:
            return np.empty(0, np.uint64), np.empty(0, np.float32)
        rows, distances = self._index.knn_query(vector, k=k)
        return rows[0], distances[0]


class GraphIndex:
    """An HNSW graph (Malkov and Yashunin 2016), and the vectors where it leads to too few."""

    def __init__(
        self,
        index: hnswlib.Index,
        ef: int,
        vectors: VectorSource,
        *,
        held: RowMask | None = None,
        walked: float = WALKED,
        equal: EqualPassages = EqualPassages(),  # noqa: B008 (never changes)
    ) -> None:
        """`held` are the rows that hold a vector; None for all. `vectors` are read for questions
        that the graph cannot answer, or not as fast; see `walked`, which is `WALKED` but in tests.
        Of rows that are `equal` the graph has to find one.
        """
        self._equal = equal
        self._index, self._ef, self._vectors, self._walked = index, ef, vectors, walked
        self._held = np.ones(index.get_current_count(), np.bool_) if held is None else held
        self._count = int(np.count_nonzero(self._held))
        self._index.set_ef(ef)  # falls back to 10 on every load
        self._index.set_num_threads(1)

    def search(
        self, vector: Vectors, k: int, allowed: RowMask | None = None, stop: Stop | None = None
    ) -> ScoredRows:
        if allowed is None:
            found = self.walk(vector, k)
            return self._compared(vector, k, self._held, stop) if found is None else found
        return self._filtered(vector, k, allowed & self._held, stop)[:k]

    def nearest(
        self, vector: Vectors, k: int, allowed: RowMask | None = None, stop: Stop | None = None
    ) -> ScoredRows:
        if not self._equal:
            return _with_ties(lambda more: self.search(vector, more, allowed, stop), k)
        own = self._held if allowed is None else allowed & self._held
        return _with_ties(
            lambda more: self._filtered(vector, more, own, stop), k, self._equal.all_in
        )

    def walk(self, vector: Vectors, k: int) -> ScoredRows | None:
        """Returns what the graph alone finds; None if it reaches fewer than `k` rows.

        hnswlib looks at least `k` wide, even if `ef` is less, and gives up only when it has seen
        all rows that it can reach: many equal vectors or deleted rows cut a graph in pieces. So a
        wider search would find no more.
        """
        reached = self._reached(vector, k)
        return None if reached is None else _pairs(*reached, None)

    def _reached(self, vector: Vectors, k: int) -> tuple[NDArray[np.integer], Vectors] | None:
        k = min(k, self._count)
        if not k:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        try:
            rows, distances = self._index.knn_query(vector, k=k, num_threads=1)
        except RuntimeError:  # fewer than k
            return None
        return rows[0], distances[0]

    def _filtered(self, vector: Vectors, k: int, allowed: RowMask, stop: Stop | None) -> ScoredRows:
        """Walks wider and wider until `k` allowed rows or more were found. Compares with all
        allowed rows where that takes less time.
        """
        count = int(np.count_nonzero(allowed))
        k = min(k, count)
        fetch = breadth(k, self._equal.reachable(allowed), self._count)
        while fetch * self._walked < count:
            reached = self._reached(vector, fetch)
            if reached is None:
                break
            found = _pairs(*self._equal.completed(*reached), allowed)
            if len(found) >= k:
                return found
            fetch *= 4  # allowed rows lie farther away than others
        compared = self._compared(vector, k, allowed, stop)
        rows = np.array([row for row, _ in compared], np.int64)
        distances = np.array([distance for _, distance in compared], np.float32)
        return _pairs(*self._equal.completed(rows, distances), allowed)

    def _compared(self, vector: Vectors, k: int, wanted: RowMask, stop: Stop | None) -> ScoredRows:
        return search_chunks(self._vectors.chunks(np.flatnonzero(wanted)), vector, k, stop)


def breadth(k: int, allowed: int, rows: int) -> int:
    """Returns how many neighbours to fetch, so that `k` of them are most likely allowed, if
    `allowed` of all `rows` are and lie anywhere.
    """
    return math.ceil((k + _SPREAD * math.sqrt(k)) * rows / max(allowed, 1))


def search_chunks(
    chunks: Iterable[tuple[RowNumbers, Vectors]], vector: Vectors, k: int, stop: Stop | None = None
) -> ScoredRows:
    """As `ExactIndex.search` over all chunks, with one chunk in memory at a time.

    Raises:
        StoppedError: `stop` was set before the last chunk.

    """
    return nsmallest(k, _each_nearest(chunks, vector, k, stop), key=by_distance)


def distances_of(source: VectorSource, vector: Vectors, rows: Sequence[int]) -> Vectors:
    """Returns squared distances of rows, bit for bit as indexes find them, [rows]."""
    wanted = np.array(rows, np.int64)
    found = dict(ExactIndex(source.read(wanted)).search(vector, len(rows)) if rows else ())
    return np.array([found[place] for place in range(len(rows))], np.float32)


def load_graph(
    file: OpenFile,
    dimension: int,
    rows: int,
    ef: int,
    vectors: VectorSource,
    held: RowMask | None = None,
    equal: EqualPassages = EqualPassages(),  # noqa: B008 (never changes)
) -> GraphIndex:
    """Loads a graph from a verified file; `vectors` are the vectors that it was built from.

    Raises:
        ArtefactError: the file cannot be read, or does not hold `rows` vectors.

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
    return GraphIndex(index, ef, vectors, held=held, equal=equal)


def build_graph(
    vectors: NDArray[np.float32], m: int, ef_construction: int, threads: int
) -> hnswlib.Index:
    """Builds a graph over float32 [rows, dimension], labelled by row, with `threads` threads."""
    rows, dimension = vectors.shape
    index = hnswlib.Index(space=SPACE, dim=dimension)
    index.init_index(max_elements=max(rows, 1), M=m, ef_construction=ef_construction)
    if rows:
        index.add_items(vectors, np.arange(rows), num_threads=threads)
    return index


def by_distance(found: tuple[int, float]) -> tuple[float, int]:
    """Key that orders rows by distance, then by row."""
    row, distance = found
    return distance, row


def _each_nearest(
    chunks: Iterable[tuple[RowNumbers, Vectors]], vector: Vectors, k: int, stop: Stop | None
) -> Iterator[tuple[int, float]]:
    for rows, vectors in chunks:
        check_stop(stop)
        yield from ExactIndex(vectors, rows).search(vector, k)


def _with_ties(
    search: Callable[[int], ScoredRows],
    k: int,
    complete: Callable[[Sequence[int]], bool] | None = None,
) -> ScoredRows:
    """Returns the `k` nearest rows and all that are as near as the last of them.

    `search` returns as many rows as it is asked for, or more. `complete` says of rows at one
    distance whether no other row has that distance.
    """
    more = 0 if complete else _EQUALS
    while k:
        found = search(k + more)
        furthest = found[:k][-1][1] if found else 0.0
        near = [pair for pair in found if pair[1] <= furthest]
        if len(found) < k + more or len(near) < len(found):
            return near
        if complete and complete([row for row, distance in near if distance == furthest]):
            return near
        more = max(4 * more, _EQUALS)
    return []


def _pairs(
    rows: NDArray[np.integer], distances: Vectors, allowed: RowMask | None, most: int | None = None
) -> ScoredRows:
    """Returns at most `most` allowed rows with their distances, nearest first."""
    if allowed is not None:
        good = allowed[rows]
        rows, distances = rows[good], distances[good]
    order = np.lexsort((rows, distances))[:most]
    return list(zip(rows[order].tolist(), distances[order].tolist(), strict=True))
