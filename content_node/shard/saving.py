"""Writes the files of a shard. Each is durable when its function returns."""

from pathlib import Path

import hnswlib
import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.inverting import invert
from winnow.content_node.shard.manifest import FileEntry, WordsEntry
from winnow.domain.word_counts import WordCounts
from winnow.errors import ArtefactError
from winnow.files.durable import sync_file
from winnow.files.opened import sha256

STORE, GRAPH = "passages.sqlite", "graph.hnsw"
TOKENS, ENDS, FREQUENCIES = "tokens.npy", "ends.npy", "frequencies.npy"
POSTINGS, STARTS, COUNTS = "postings.npy", "starts.npy", "counts.npy"
FILES = (STORE, GRAPH, TOKENS, ENDS, FREQUENCIES, POSTINGS, STARTS, COUNTS)


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


def save_graph(graph: hnswlib.Index, path: Path) -> None:
    """Writes a graph; raises ArtefactError if the file is incomplete."""
    graph.save_index(str(path))
    # hnswlib reports neither a full disk nor a missing directory
    written = path.stat().st_size if path.exists() else 0
    if written != graph.index_file_size():
        raise ArtefactError(
            f"{path} has {written} bytes of {graph.index_file_size()}: is the disk full?"
        )
    sync_file(path)


def save_array(values: NDArray[np.generic], path: Path) -> None:
    np.save(path, values, allow_pickle=False)
    sync_file(path)


def file_entry(path: Path) -> FileEntry:
    """Returns the size and checksum of a file."""
    return FileEntry(sha256=sha256(path), bytes=path.stat().st_size)
