"""Searches a list of rows exactly: NumPy finds candidates, `comparing` computes their distances.

So distances are those of all other searches, bit for bit, and most vectors are compared where they
were read. A table of all vectors would copy them first.
"""

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.nearest import Vector, VectorSource, compute_distances
from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.rows import RowNumbers, ScoredRows
from winnow.inference.stop_signal import StopSignal

_CHUNK_ROWS = 512
"""Vectors in memory at a time, to stay in the processor's cache."""
_DIRECT_ROWS = 256
"""Number of rows up to which all rows are candidates: finding some would take longer."""


def nearest_of_rows(
    source: VectorSource, vector: Vector, k: int, rows: RowNumbers, stop: StopSignal | None = None
) -> ScoredRows:
    """Returns the nearest `k` of `rows` with squared distances, nearest first, ties by row.

    The result also includes all further rows at the distance of the last one.

    Raises:
        StoppedError: `stop` was set while vectors were compared.
        ArtefactError: a file was changed.

    """
    if not k or not len(rows):
        return []
    if len(rows) > max(k, _DIRECT_ROWS):
        rows = _candidates(source, vector, k, rows, stop)
    distances = compute_distances(source, vector, rows.tolist())
    order = np.lexsort((rows, distances))
    rows, distances = rows[order], distances[order]
    end = int(np.searchsorted(distances, distances[:k][-1], "right"))
    return list(zip(rows[:end].tolist(), distances[:end].tolist(), strict=True))


def _candidates(
    source: VectorSource, vector: Vector, k: int, rows: RowNumbers, stop: StopSignal | None
) -> RowNumbers:
    """Returns those of the rows that can be among the nearest `k`, or as near as the last one."""
    distances = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _CHUNK_ROWS):
        check_stop(stop)
        chunk = slice(start, start + _CHUNK_ROWS)
        differences = source.read(rows[chunk]) - vector
        np.einsum("ij,ij->i", differences, differences, out=distances[chunk])
    kth = np.partition(distances, k - 1)[k - 1]
    bound = kth * (1 + _rounding(len(vector))) + np.finfo(np.float32).tiny
    candidates: NDArray[np.bool_] = ~(distances > bound)
    return rows[candidates]


def _rounding(dimension: int) -> np.float32:
    """Returns a bound of the relative difference between sums of squares in single precision.

    Each sum is off by at most (dimension + 2) / 2 times the precision (Higham 2002, section 3.1).
    Four sums are compared: those of two rows, in NumPy and in the library. The bound is twice that.
    """
    return np.float32(4 * (dimension + 2) * np.finfo(np.float32).eps)
