"""Reads vectors by row from a file, so that memory holds each vector at most once."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.files.opened import OpenFile

FLOAT_BYTES = 4
_CHUNK_ROWS = 4_096
"""Vectors in memory at a time: some megabytes."""


class StoredVectors:
    """Vectors in a file. Safe to use from several threads."""

    def __init__(
        self,
        file: OpenFile,
        *,
        dimension: int,
        offsets: NDArray[np.int64],
        equal_groups: Sequence[NDArray[np.int64]],
    ) -> None:
        """Takes the byte offset of each row's vector in the file.

        `equal_groups` are the groups of rows with equal vectors, from `group_equal`.
        """
        self._file, self._offsets = file, offsets
        self._bytes = dimension * FLOAT_BYTES
        self._dimension = dimension
        self.equal_groups = equal_groups

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the vectors of rows: float32 [rows, dimension].

        Raises:
            ArtefactError: the file was changed.

        """
        data = self._file.read_each([self._bytes] * len(rows), self._offsets[rows].tolist())
        self._file.check()
        return np.frombuffer(data, "<f4").reshape(-1, self._dimension)

    def chunks(
        self, rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yields rows and their vectors, some thousand rows at a time."""
        for start in range(0, len(rows), _CHUNK_ROWS):
            chunk = rows[start : start + _CHUNK_ROWS]
            yield chunk, self.read(chunk)
