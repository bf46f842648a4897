"""Reads vectors by row from a file, so that memory holds each vector at most once."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from winnow.files.opened import OpenFile

FLOAT_BYTES = 4
_CHUNK_ROWS = 4_096
"""Vectors in memory at a time: some megabytes."""
_GAP_BYTES = 32_768
"""Bytes between two vectors up to which one read may return both."""
_CALL_BYTES = 14_000
"""Bytes that are read in the time that the call for a small read takes: about 2 µs."""


class StoredVectors:
    """Vectors in a file. Safe to use from several threads."""

    def __init__(
        self,
        file: OpenFile,
        *,
        dimension: int,
        stride: int,
        offsets: NDArray[np.int64],
        equal_groups: Sequence[NDArray[np.int64]],
    ) -> None:
        """Takes the byte offset of each row's vector in the file.

        Two offsets differ by a multiple of `stride`. `equal_groups` are the groups of rows with
        equal vectors, from `group_equal`.
        """
        self._file, self._offsets, self._stride = file, offsets, stride
        self._bytes = dimension * FLOAT_BYTES
        self._dimension = dimension
        self.equal_groups = equal_groups

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the vectors of rows: float32 [rows, dimension].

        Vectors that are close to each other in the file are read at once if that takes less time.

        Raises:
            ArtefactError: the file was changed.

        """
        offsets = self._offsets[rows]
        if runs := self._plan_runs(offsets):
            vectors = [self._read_run(offsets[begin:end]) for begin, end in runs]
            found = vectors[0] if len(vectors) == 1 else np.concatenate(vectors)
        else:
            data = self._file.read_each([self._bytes] * len(rows), offsets.tolist())
            found = np.frombuffer(data, "<f4").reshape(-1, self._dimension)
        self._file.check()
        return found

    def chunks(
        self, rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yields rows and their vectors, some thousand rows at a time."""
        for start in range(0, len(rows), _CHUNK_ROWS):
            chunk = rows[start : start + _CHUNK_ROWS]
            yield chunk, self.read(chunk)

    def _plan_runs(self, offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Returns the begin and end of each run of offsets to read at once.

        Returns none if reading each vector takes less time. A run takes two calls: its vectors are
        also copied.
        """
        steps = np.diff(offsets)
        is_new = (steps <= 0) | (steps > self._stride + _GAP_BYTES)
        runs = int(np.count_nonzero(is_new)) + 1
        size = int(steps[~is_new].sum()) + runs * self._bytes
        if size + 2 * runs * _CALL_BYTES >= len(offsets) * _CALL_BYTES:
            return []
        return list(pairwise([0, *(np.flatnonzero(is_new) + 1).tolist(), len(offsets)]))

    def _read_run(self, offsets: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the vectors at ascending offsets, with one read of all that is between them."""
        first, last = int(offsets[0]), int(offsets[-1])
        data = self._file.read(last - first + self._bytes, first)
        count = (last - first) // self._stride + 1
        strides = (self._stride, FLOAT_BYTES)
        vectors = np.ndarray((count, self._dimension), "<f4", data, strides=strides)
        return vectors if count == len(offsets) else vectors[(offsets - first) // self._stride]
