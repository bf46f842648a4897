"""Files of a shard, each durable when its function returns."""

import os
from pathlib import Path

import hnswlib
import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.inverting import inverted
from winnow.content_node.shard.manifest import FileEntry, WordsEntry
from winnow.domain.word_counts import WordCounts
from winnow.errors import ArtefactError
from winnow.files.opened import sha256

STORE, GRAPH = "passages.sqlite", "graph.hnsw"
TOKENS, ENDS, FREQUENCIES = "tokens.npy", "ends.npy", "frequencies.npy"
POSTINGS, STARTS, COUNTS = "postings.npy", "starts.npy", "counts.npy"
FILES = (STORE, GRAPH, TOKENS, ENDS, FREQUENCIES, POSTINGS, STARTS, COUNTS)


def save_words(
    directory: Path,
    tokens: NDArray[np.unsignedinteger],
    ends: NDArray[np.int64],
    built: WordCounts,
) -> WordsEntry:
    """Writes the words of a shard, row after row and turned round; `built` are those of the index
    as it was built.
    """
    made = inverted(tokens, ends)
    arrays = (
        (TOKENS, tokens),
        (ENDS, ends),
        (FREQUENCIES, built.passages),
        (POSTINGS, made.rows),
        (STARTS, made.starts),
        (COUNTS, made.counts),
    )
    for name, values in arrays:
        save_array(values, directory / name)
    return WordsEntry(
        tokens=TOKENS,
        ends=ENDS,
        frequencies=FREQUENCIES,
        index_tokens=built.tokens,
        postings=POSTINGS,
        starts=STARTS,
        counts=COUNTS,
    )


def save_graph(graph: hnswlib.Index, path: Path) -> None:
    """Writes a graph; raises ArtefactError if not all of it was written."""
    graph.save_index(str(path))
    # hnswlib reports neither a full disk nor a missing directory
    written = path.stat().st_size if path.exists() else 0
    if written != graph.index_file_size():
        raise ArtefactError(
            f"{path} has {written} bytes of {graph.index_file_size()}: is the disk full?"
        )
    sync_file(path)


def save_array(values: NDArray[np.generic], path: Path) -> None:
    """Writes an array."""
    np.save(path, values, allow_pickle=False)
    sync_file(path)


def sync_file(path: Path) -> None:
    """Makes what was written to a file durable."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def file_entry(path: Path) -> FileEntry:
    """What a manifest says of a file."""
    return FileEntry(sha256=sha256(path), bytes=path.stat().st_size)
