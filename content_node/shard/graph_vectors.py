"""Reads vectors by row from the file of a graph. It needs no hnswlib.

hnswlib 0.8.0 writes a header, then for each vector its links, the vector and its label. hnswlib's
own method to read vectors makes a Python float of every value and blocks all other threads.
"""

import struct

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.equal_passages import group_equal, hash_vectors
from winnow.content_node.shard.stored_vectors import FLOAT_BYTES, StoredVectors
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

_HEADER = struct.Struct("<6QiI3QdQ")
_LABEL_BYTES = 8
_BLOCK_BYTES = 1 << 23
"""Bytes in memory at a time while labels are read."""


class GraphVectors(StoredVectors):
    """The vectors in the file of a graph."""

    def __init__(self, file: OpenFile, dimension: int, rows: int) -> None:
        """Raises ArtefactError if the file does not hold `rows` vectors of `dimension`, each
        labelled by its row.
        """
        if file.size < _HEADER.size:
            raise ArtefactError(f"{file.path} holds no graph: it has {file.size} bytes")
        header = _HEADER.unpack(file.read(_HEADER.size, 0))
        _, _, count, stride, label, vector = header[:6]
        if count != rows:
            raise ArtefactError(f"{file.path} holds {count} vectors, expected {rows}")
        if (
            label - vector != dimension * FLOAT_BYTES
            or label + _LABEL_BYTES != stride
            or _HEADER.size + rows * stride > file.size
        ):
            raise ArtefactError(
                f"{file.path} does not hold vectors of {dimension} values: build the index again"
            )
        offsets = np.full(rows, -1, np.int64)
        labels, hashes = _read_labels(file, stride, vector, label, rows)
        if rows and labels.max() >= rows:
            raise ArtefactError(
                f"{file.path} has a vector of row {labels.max()}, the shard has {rows} rows: build "
                "the index again"
            )
        offsets[labels] = _HEADER.size + np.arange(rows) * stride + vector
        if (offsets < 0).any():
            raise ArtefactError(f"{file.path} has two vectors of one row: build the index again")
        groups = [labels.astype(np.int64)[group] for group in group_equal(hashes)]
        super().__init__(
            file, dimension=dimension, stride=stride, offsets=offsets, equal_groups=groups
        )


def _read_labels(
    file: OpenFile, stride: int, vector: int, label: int, rows: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Returns the label and the hash of each vector, in the order of the file.

    Each row takes `stride` bytes; `vector` and `label` are offsets in it.
    """
    block = max(_BLOCK_BYTES // stride, 1)
    labels, hashes = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for start in range(0, rows, block):
        count = min(block, rows - start)
        data = file.read(count * stride, _HEADER.size + start * stride)
        table = np.frombuffer(data, np.uint8).reshape(count, stride)
        labels.append(table[:, label:].copy().view("<u8").ravel())
        hashes.append(hash_vectors(table[:, vector:label].copy().view("<f4")))
    return np.concatenate(labels), np.concatenate(hashes)
