"""The graph of the next generation: the old one with rows added and deleted, or a new one.

Knows hnswlib, which can add to no graph that is searched: this is another process.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import hnswlib
import numpy as np
from numpy.typing import NDArray

from content_node.shard.nearest import SPACE
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

Chunks = Iterable[tuple[Sequence[int], NDArray[np.float32]]]
"""Rows, and their vectors: float32 [rows, dimension], a number of rows at a time."""


def grown_graph(
    file: OpenFile, dimension: int, rows: int, new: Chunks, dead: Iterable[int]
) -> hnswlib.Index:
    """The graph in `file`, which was verified, with new rows and without the dead ones.

    `rows` is how many there are then, with those that hold nothing. A row that was dead before
    is dead in the file, too.

    Raises:
        ArtefactError: it cannot be loaded, or has no such row.

    """
    index = hnswlib.Index(space=SPACE, dim=dimension)
    try:
        index.load_index(str(file.link), max_elements=max(rows, 1))
        for row in dead:
            index.mark_deleted(row)
    except (RuntimeError, MemoryError) as error:
        raise ArtefactError(f"{file.path} cannot be added to: {error}") from error
    _add(index, new)
    return index


def new_graph(
    dimension: int, rows: int, all_rows: Chunks, m: int, ef_construction: int
) -> hnswlib.Index:
    """A graph of rows that all hold something, or of some that do not and are not in it."""
    index = hnswlib.Index(space=SPACE, dim=dimension)
    index.init_index(max_elements=max(rows, 1), M=m, ef_construction=ef_construction)
    _add(index, all_rows)
    return index


def _add(index: hnswlib.Index, chunks: Chunks) -> None:
    for rows, vectors in chunks:
        # the order of adding is part of the graph: with one thread it is always the same
        index.add_items(vectors, np.asarray(rows, np.int64), num_threads=1)


def rows_of_graph(path: Path, dimension: int) -> int:
    """How many rows a graph has, also those that are marked as deleted."""
    index = hnswlib.Index(space=SPACE, dim=dimension)
    index.load_index(str(path))
    return int(index.get_current_count())
