"""The graph of the next generation: the old graph with rows added and deleted, or a new graph.

It is built in the merge process, since hnswlib cannot add to a graph while it is searched. Without
hnswlib, the next generation has only vectors.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from winnow.content_node.merging.passages import Chunks
from winnow.content_node.shard.hnsw import Graph, can_use_graphs, new_graph
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.saving import GRAPH, VECTORS, save_graph, save_vectors
from winnow.content_node.shard.store import PassageStore
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

_HOLE_STRIDE = 7_919
"""A prime: consecutive holes copy the vectors of live rows that are this far apart."""


def extend_graph(
    file: OpenFile, dimension: int, rows: int, new: Chunks, dead: Iterable[int]
) -> Graph:
    """Loads the verified graph in `file`, adds the `new` rows, and deletes the `dead` rows.

    Rows without a passage stay in the graph, marked as deleted; `rows` is the new total with them.
    `dead` omits rows that were dead before: the file has them marked already.

    Raises ArtefactError if the graph cannot be loaded, or lacks a dead row.
    """
    index = new_graph(dimension)
    try:
        index.load_index(str(file.link), max_elements=max(rows, 1))
        _add_chunks(index, new)
        for row in dead:
            index.mark_deleted(row)
    except (RuntimeError, MemoryError) as error:
        raise ArtefactError(f"cannot add rows to the graph {file.path}: {error}") from error
    return index


def build_graph_from_chunks(
    dimension: int, rows: int, all_rows: Chunks, m: int, ef_construction: int
) -> Graph:
    """Builds a graph of rows that all hold a passage; `m` is hnswlib's links per row."""
    index = new_graph(dimension)
    index.init_index(max_elements=max(rows, 1), M=m, ef_construction=ef_construction)
    _add_chunks(index, all_rows)
    return index


def build_graph_from_store(store: PassageStore, manifest: ShardManifest) -> Graph:
    """Builds the graph of a generation from its database alone.

    Every row must be in the graph, but a hole, a row without a passage, has no vector in the
    database. A hole gets a copy of a live row's vector and is marked as deleted. Copies disturb the
    paths through the graph least.
    """
    vectors, live_rows = store.vectors(manifest.dimension), store.row_numbers()
    holes = np.setdiff1d(np.arange(manifest.rows), live_rows)
    sources = vectors if len(live_rows) else np.zeros((1, manifest.dimension), np.float32)
    copies = sources[np.arange(len(holes)) * _HOLE_STRIDE % len(sources)]
    chunks = iter([(live_rows, vectors), (holes, copies)])
    index = build_graph_from_chunks(
        manifest.dimension, manifest.rows, chunks, manifest.m, manifest.ef_construction
    )
    for row in holes.tolist():
        index.mark_deleted(row)
    return index


def save_vectors_of_store(store: PassageStore, manifest: ShardManifest, directory: Path) -> str:
    """Writes the vectors of a generation from its database alone; returns the name of the file.

    They get a graph if hnswlib is installed.
    """
    if can_use_graphs():
        save_graph(build_graph_from_store(store, manifest), directory / GRAPH)
        return GRAPH
    rows, vectors = store.row_numbers(), store.vectors(manifest.dimension)
    save_vectors(rows, vectors, manifest.rows, directory / VECTORS)
    return VECTORS


def _add_chunks(index: Graph, chunks: Chunks) -> None:
    for rows, vectors in chunks:
        if not len(rows):
            continue
        # the graph depends on the order of adding, which is always the same with one thread
        index.add_items(vectors, rows, num_threads=1)
