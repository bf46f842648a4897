"""Reads vectors by row from the `.npy` file of a shard without a graph."""

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.equal_passages import group_equal, hash_vectors
from winnow.content_node.shard.stored_vectors import FLOAT_BYTES, StoredVectors
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.stored_array import read_header

_BLOCK_ROWS = 4_096
"""Vectors in memory at a time while they are hashed: some megabytes."""


class TableVectors(StoredVectors):
    """The vectors in the file of a shard without a graph: zeros for empty rows."""

    def __init__(self, file: OpenFile, dimension: int, rows: int) -> None:
        """Raises ArtefactError if the file does not hold `rows` vectors of `dimension`."""
        shape, number_type, start = read_header(file)
        stride = dimension * FLOAT_BYTES
        if (shape, number_type.str, start + rows * stride) != ((rows, dimension), "<f4", file.size):
            raise ArtefactError(
                f"{file.path} does not hold {rows} vectors of {dimension} values: build the index "
                "again"
            )
        super().__init__(
            file,
            dimension=dimension,
            stride=stride,
            offsets=start + np.arange(rows) * stride,
            equal_groups=group_equal(_hash_each(file, start, rows, dimension)),
        )


def _hash_each(file: OpenFile, start: int, rows: int, dimension: int) -> NDArray[np.uint64]:
    """Returns the hash of each vector of a file whose values begin at the byte `start`."""
    hashes, stride = [np.empty(0, np.uint64)], dimension * FLOAT_BYTES
    for first in range(0, rows, _BLOCK_ROWS):
        count = min(_BLOCK_ROWS, rows - first)
        data = file.read(count * stride, start + first * stride)
        hashes.append(hash_vectors(np.frombuffer(data, "<f4").reshape(count, dimension)))
    return np.concatenate(hashes)
