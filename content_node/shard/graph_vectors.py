"""Reads vectors by row from the file of a graph, so that memory holds each vector only once.

hnswlib 0.8.0 writes a header, then for each vector its links, the vector and its label. hnswlib's
own method to read vectors makes a Python float of every value and blocks all other threads.
"""

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.equal_passages import group_equal, hash_vectors
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

_HEADER = struct.Struct("<6QiI3QdQ")
_FLOAT_BYTES, _LABEL_BYTES = 4, 8
_BLOCK_BYTES = 1 << 23
"""Bytes in memory at a time while labels are read."""
_CHUNK_ROWS = 4_096
"""Vectors in memory at a time: some megabytes."""


class GraphVectors:
    """The vectors in the file of a graph. Safe to use from several threads."""

    def __init__(self, file: OpenFile, dimension: int, rows: int) -> None:
        """Raises ArtefactError if the file does not hold `rows` vectors of `dimension`, each
        labelled by its row.
        """
        self._file, self._dimension = file, dimension
        if file.size < _HEADER.size:
            raise ArtefactError(f"{file.path} holds no graph: it has {file.size} bytes")
        header = _HEADER.unpack(file.read(_HEADER.size, 0))
        _, _, count, self._stride, label, vector = header[:6]
        if count != rows:
            raise ArtefactError(f"{file.path} holds {count} vectors, expected {rows}")
        if (
            label - vector != dimension * _FLOAT_BYTES
            or label + _LABEL_BYTES != self._stride
            or _HEADER.size + rows * self._stride > file.size
        ):
            raise ArtefactError(
                f"{file.path} does not hold vectors of {dimension} values: build the index again"
            )
        self._offsets = np.full(rows, -1, np.int64)
        """Byte offset of each row's vector in the file."""
        labels, hashes = self._read_labels(vector, label, rows)
        if rows and labels.max() >= rows:
            raise ArtefactError(
                f"{file.path} has a vector of row {labels.max()}, the shard has {rows} rows: build "
                "the index again"
            )
        self._offsets[labels] = _HEADER.size + np.arange(rows) * self._stride + vector
        if (self._offsets < 0).any():
            raise ArtefactError(f"{file.path} has two vectors of one row: build the index again")
        self.equal_groups = [labels.astype(np.int64)[group] for group in group_equal(hashes)]
        """Groups of rows with equal vectors, from `group_equal`."""

    def read(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the vectors of rows: float32 [rows, dimension].

        Raises:
            ArtefactError: the file was changed.

        """
        sizes = [self._dimension * _FLOAT_BYTES] * len(rows)
        data = self._file.read_each(sizes, self._offsets[rows].tolist())
        self._file.check()
        return np.frombuffer(data, "<f4").reshape(-1, self._dimension)

    def chunks(
        self, rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yields rows and their vectors, some thousand rows at a time."""
        for start in range(0, len(rows), _CHUNK_ROWS):
            chunk = rows[start : start + _CHUNK_ROWS]
            yield chunk, self.read(chunk)

    def _read_labels(
        self, vector: int, label: int, rows: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Returns the label and the hash of each vector, in the order of the file."""
        block = max(_BLOCK_BYTES // self._stride, 1)
        labels, hashes = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        for start in range(0, rows, block):
            count = min(block, rows - start)
            data = self._file.read(count * self._stride, _HEADER.size + start * self._stride)
            table = np.frombuffer(data, np.uint8).reshape(count, self._stride)
            labels.append(table[:, label:].copy().view("<u8").ravel())
            hashes.append(hash_vectors(table[:, vector:label].copy().view("<f4")))
        return np.concatenate(labels), np.concatenate(hashes)
