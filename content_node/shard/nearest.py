"""Nearest vectors: by graph, or exactly.

Both are hnswlib's, so that the distances of one pair of vectors are equal bit for bit whichever
found them. Squared Euclidean distance throughout.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import Final, Protocol

import hnswlib
import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.equal_passages import EqualPassages
from winnow.content_node.shard.segment import Found, Rows
from winnow.errors import ArtefactError, StoppedError
from winnow.files.opened import OpenFile
from winnow.inference.stop import Stop

SPACE: Final = "l2"
Vectors = NDArray[np.float32]
Numbers = NDArray[np.int64]
_EQUALS = 4
"""Passages beyond those that are wanted, to see whether they are as near: the same text is there
twice now and then.
"""
WALKED = 0.7
"""Vectors that can be read and compared in the time in which a graph finds one more of the nearest.
Measured by `python bench/masked.py` at commit 977ccf2.
"""
_SPREAD = 3.0
"""Standard deviations that are fetched beyond what is needed on average, if allowed rows lie near
and far alike.
"""


class VectorSource(Protocol):
    """Vectors by row, from memory or disk."""

    def read(self, rows: Numbers) -> Vectors:
        """The vectors of rows: float32 [rows, dimension]."""

    def chunks(self, rows: Numbers) -> Iterable[tuple[Numbers, Vectors]]:
        """The same, a number of rows at a time, each with its rows."""


class NearestIndex(Protocol):
    """Finds rows near a vector. Safe to search from several threads at once."""

    def search(
        self, vector: Vectors, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        """At most `k` (row, squared distance) of the allowed rows, nearest first; ties by row.

        Raises:
            StoppedError: `stop` was set while vectors were compared.

        """

    def nearest(
        self, vector: Vectors, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        """The same, and all that are as near as the last of them. Raises as `search`."""


class ExactIndex:
    """Compares with every vector: right by definition, and fast enough for small shards."""

    def __init__(self, vectors: Vectors, rows: Numbers | None = None) -> None:
        """`vectors` is float32 [vectors, dimension], of `rows`, or of rows 0, 1, 2 and so on."""
        self._rows = np.arange(len(vectors)) if rows is None else rows
        self._dimension = vectors.shape[1]
        self._index = hnswlib.BFIndex(space=SPACE, dim=self._dimension)
        self._index.init_index(max_elements=max(len(vectors), 1))
        if len(vectors):
            self._index.add_items(vectors, self._rows)
        self._index.set_num_threads(1)

    def search(
        self, vector: Vectors, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        """At most `k` (row, squared distance) of the allowed rows, nearest first; ties by row."""
        others = 0 if allowed is None else int(np.count_nonzero(~allowed[self._rows]))
        return _pairs(*self._nearest(vector, min(k + others, len(self._rows))), allowed, k)

    def nearest(
        self, vector: Vectors, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        """The same, and all that are as near as the last of them."""
        return _with_ties(lambda more: self.search(vector, more, allowed, stop), k)

    def _nearest(self, vector: Vectors, k: int) -> tuple[NDArray[np.uint64], Vectors]:
        if len(vector) != self._dimension:  # hnswlib would read on in whatever lies beside it
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
        held: Rows | None = None,
        walked: float = WALKED,
        equal: EqualPassages = EqualPassages(),  # noqa: B008 (never changes)
    ) -> None:
        """`held` are the rows that hold a vector; all if none. `vectors` are read for questions
        that the graph cannot answer, or not as fast; see `WALKED`. Of rows that are `equal` the
        graph has to find one.
        """
        self._equal = equal
        self._index, self._ef, self._vectors, self._walked = index, ef, vectors, walked
        self._held = np.ones(index.get_current_count(), np.bool_) if held is None else held
        self._count = int(np.count_nonzero(self._held))
        self._index.set_ef(ef)  # falls back to 10 on every load
        self._index.set_num_threads(1)

    def search(
        self, vector: Vectors, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        """At most `k` (row, squared distance) of the allowed rows, nearest first; ties by row."""
        if allowed is None:
            found = self.walk(vector, k)
            return self._compared(vector, k, self._held, stop) if found is None else found
        return self._filtered(vector, k, allowed & self._held, stop)[:k]

    def nearest(
        self, vector: Vectors, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        """The same, and all that are as near as the last of them."""
        if not self._equal:
            return _with_ties(lambda more: self.search(vector, more, allowed, stop), k)
        own = self._held if allowed is None else allowed & self._held
        return _with_ties(
            lambda more: self._filtered(vector, more, own, stop), k, self._equal.all_in
        )

    def walk(self, vector: Vectors, k: int, allowed: Rows | None = None) -> Found | None:
        """What the graph alone finds, less what is not allowed; None if fewer than `k` rows can be
        reached in it.

        hnswlib looks at least `k` wide, whatever `ef` is, and gives up only when it has seen all
        that it can reach: many equal vectors or deleted rows cut a graph in pieces. So a wider
        search would find no more.
        """
        reached = self._reached(vector, k)
        return None if reached is None else _pairs(*reached, allowed)

    def _reached(self, vector: Vectors, k: int) -> tuple[NDArray[np.integer], Vectors] | None:
        k = min(k, self._count)
        if not k:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        try:
            rows, distances = self._index.knn_query(vector, k=k, num_threads=1)
        except RuntimeError:  # fewer than k
            return None
        return rows[0], distances[0]

    def _filtered(self, vector: Vectors, k: int, allowed: Rows, stop: Stop | None) -> Found:
        """Walks wider and wider until enough allowed rows were met, of which there may be more
        than `k`; compares with all of them where that takes less time.
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

    def _compared(self, vector: Vectors, k: int, wanted: Rows, stop: Stop | None) -> Found:
        return search_chunks(self._vectors.chunks(np.flatnonzero(wanted)), vector, k, stop)


def breadth(k: int, allowed: int, rows: int) -> int:
    """How many of the nearest of `rows` to fetch, so that `k` of them are most likely allowed, if
    `allowed` of all are, wherever they lie.
    """
    return math.ceil((k + _SPREAD * math.sqrt(k)) * rows / max(allowed, 1))


def search_chunks(
    chunks: Iterable[tuple[Numbers, Vectors]], vector: Vectors, k: int, stop: Stop | None = None
) -> Found:
    """The same as `ExactIndex.search` over all chunks, with one of them in memory at a time.

    Raises:
        StoppedError: `stop` was set before the last chunk.

    """
    return nsmallest(k, _each_nearest(chunks, vector, k, stop), key=by_distance)


def distances_of(source: VectorSource, vector: Vectors, rows: Sequence[int]) -> Vectors:
    """Squared distances of rows, bit for bit as indexes find them, [rows]."""
    wanted = np.array(rows, np.int64)
    found = dict(ExactIndex(source.read(wanted)).search(vector, len(rows)) if rows else ())
    return np.array([found[place] for place in range(len(rows))], np.float32)


def load_graph(
    file: OpenFile,
    dimension: int,
    rows: int,
    ef: int,
    vectors: VectorSource,
    held: Rows | None = None,
    equal: EqualPassages = EqualPassages(),  # noqa: B008 (never changes)
) -> GraphIndex:
    """Loads a graph whose file was verified into memory; `vectors` are those it was built of.

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
    return GraphIndex(index, ef, vectors, held, equal=equal)


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


def by_distance(found: tuple[int, float]) -> tuple[float, int]:
    """The order of nearest rows."""
    row, distance = found
    return distance, row


def _each_nearest(
    chunks: Iterable[tuple[Numbers, Vectors]], vector: Vectors, k: int, stop: Stop | None
) -> Iterator[tuple[int, float]]:
    for rows, vectors in chunks:
        if stop is not None and stop.is_set:
            raise StoppedError("the search was ended")
        yield from ExactIndex(vectors, rows).search(vector, k)


def _with_ties(
    search: Callable[[int], Found],
    k: int,
    complete: Callable[[Sequence[int]], bool] | None = None,
) -> Found:
    """The `k` nearest and all that are as near as the last of them.

    `search` gives as many as it is asked for, or more; `complete` says of rows that are as near as
    each other whether no others are.
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
    rows: NDArray[np.integer], distances: Vectors, allowed: Rows | None, most: int | None = None
) -> Found:
    """Allowed rows with their distances, nearest first; at most so many."""
    if allowed is not None:
        good = allowed[rows]
        rows, distances = rows[good], distances[good]
    order = np.lexsort((rows, distances))[:most]
    return list(zip(rows[order].tolist(), distances[order].tolist(), strict=True))
