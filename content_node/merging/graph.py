"""The graph of the next generation: the old one with rows added and deleted, or a new one.

Knows hnswlib, which can add to no graph that is searched: this is another process.
"""

from collections.abc import Iterable

import hnswlib
import numpy as np

from winnow.content_node.merging.passages import Chunks
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.nearest import SPACE
from winnow.content_node.shard.store import PassageStore
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

_APART = 7_919
"""A prime: the distance between two rows whose vectors holes copy."""


def grown_graph(
    file: OpenFile, dimension: int, rows: int, new: Chunks, dead: Iterable[int]
) -> hnswlib.Index:
    """The graph in `file`, which was verified, with new rows and without the dead ones.

    `rows` is how many there are then, with those that hold nothing: each is in the graph. A row
    that was dead before is dead in the file, too.

    Raises ArtefactError if it cannot be loaded, or has no such row.
    """
    index = hnswlib.Index(space=SPACE, dim=dimension)
    try:
        index.load_index(str(file.link), max_elements=max(rows, 1))
        _add(index, new)
        for row in dead:
            index.mark_deleted(row)
    except (RuntimeError, MemoryError) as error:
        raise ArtefactError(f"{file.path} cannot be added to: {error}") from error
    return index


def new_graph(
    dimension: int, rows: int, all_rows: Chunks, m: int, ef_construction: int
) -> hnswlib.Index:
    """A graph of rows that all hold a passage."""
    index = hnswlib.Index(space=SPACE, dim=dimension)
    index.init_index(max_elements=max(rows, 1), M=m, ef_construction=ef_construction)
    _add(index, all_rows)
    return index


def graph_of_store(store: PassageStore, manifest: ShardManifest) -> hnswlib.Index:
    """Builds the graph of a generation from its database alone.

    Every row must be in the graph, but a row without a passage has no vector in the database. Such
    a row gets a copy of a live row's vector and is marked deleted. A copy disturbs the paths
    through the graph least.
    """
    vectors, held = store.vectors(manifest.dimension), store.row_numbers()
    holes = np.setdiff1d(np.arange(manifest.rows), held)
    some = vectors if len(held) else np.zeros((1, manifest.dimension), np.float32)
    twins = some[np.arange(len(holes)) * _APART % len(some)]
    chunks = iter([(held, vectors), (holes, twins)])
    index = new_graph(
        manifest.dimension, manifest.rows, chunks, manifest.m, manifest.ef_construction
    )
    for row in holes.tolist():
        index.mark_deleted(row)
    return index


def _add(index: hnswlib.Index, chunks: Chunks) -> None:
    for rows, vectors in chunks:
        if not len(rows):
            continue
        # the order of adding is part of the graph: with one thread it is always the same
        index.add_items(vectors, rows, num_threads=1)
