"""Writes the files of a shard. Each is durable when its function returns."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.hnsw import Graph
from winnow.content_node.shard.inverting import invert
from winnow.content_node.shard.manifest import FORMAT, GRAPHLESS_FORMAT, FileEntry, WordsEntry
from winnow.domain.word_counts import WordCounts
from winnow.errors import ArtefactError
from winnow.files.durable import sync_file
from winnow.files.opened import sha256

STORE, GRAPH, VECTORS = "passages.sqlite", "graph.hnsw", "vectors.npy"
TOKENS, ENDS, FREQUENCIES = "tokens.npy", "ends.npy", "frequencies.npy"
POSTINGS, STARTS, COUNTS = "postings.npy", "starts.npy", "counts.npy"
WORDS = (TOKENS, ENDS, FREQUENCIES, POSTINGS, STARTS, COUNTS)
FILES = (STORE, GRAPH, *WORDS)
"""The files of a shard with a graph; a shard without one has `VECTORS` instead of `GRAPH`."""


def save_words(
    directory: Path,
    tokens: NDArray[np.unsignedinteger],
    ends: NDArray[np.int64],
    index_counts: WordCounts,
) -> WordsEntry:
    """Writes the tokens of a shard twice: in the order of the rows, and as an inverted index.

    `index_counts` are the word counts of the whole index when it was built.
    """
    inverted = invert(tokens, ends)
    arrays = (
        (TOKENS, tokens),
        (ENDS, ends),
        (FREQUENCIES, index_counts.passages),
        (POSTINGS, inverted.rows),
        (STARTS, inverted.starts),
        (COUNTS, inverted.counts),
    )
    for name, values in arrays:
        save_array(values, directory / name)
    return WordsEntry(
        tokens=TOKENS,
        ends=ENDS,
        frequencies=FREQUENCIES,
        index_tokens=index_counts.tokens,
        postings=POSTINGS,
        starts=STARTS,
        counts=COUNTS,
    )


def save_graph(graph: Graph, path: Path) -> None:
    """Writes a graph; raises ArtefactError if the file is incomplete."""
    graph.save_index(str(path))
    # hnswlib reports neither a full disk nor a missing directory
    written = path.stat().st_size if path.exists() else 0
    if written != graph.index_file_size():
        raise ArtefactError(
            f"{path} has {written} bytes of {graph.index_file_size()}: is the disk full?"
        )
    sync_file(path)


def save_vectors(
    rows: NDArray[np.int64], vectors: NDArray[np.float32], count: int, path: Path
) -> None:
    """Writes float32 [`count`, dimension]: the vectors of `rows`, and zeros for other rows."""
    table = np.zeros((count, vectors.shape[1]), "<f4")
    table[rows] = vectors
    save_array(table, path)


def save_array(values: NDArray[np.generic], path: Path) -> None:
    np.save(path, values, allow_pickle=False)
    sync_file(path)


def describe_files(directory: Path, vectors: str) -> dict[str, Any]:
    """Returns the fields of a manifest that describe its files.

    `vectors` is the name of the file of vectors: `GRAPH` or `VECTORS`.
    """
    has_graph = vectors == GRAPH
    return {
        "format": FORMAT if has_graph else GRAPHLESS_FORMAT,
        "store": STORE,
        "graph": GRAPH if has_graph else None,
        "vectors": None if has_graph else VECTORS,
        "files": {name: file_entry(directory / name) for name in (STORE, vectors, *WORDS)},
    }


def file_entry(path: Path) -> FileEntry:
    """Returns the size and checksum of a file."""
    return FileEntry(sha256=sha256(path), bytes=path.stat().st_size)
