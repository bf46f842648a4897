"""Checks one generation of a shard, without later writes: files, vectors, words and recall."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.inverting import invert
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.nearest import ExactIndex, load_graph
from winnow.content_node.shard.rows import ScoredRows
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.shard.stored_segment import open_vectors
from winnow.files.opened import OpenFile, verify
from winnow.quoting import are

K = 10
"""Number of nearest passages that are searched for each vector."""
_EF = 128
"""Search width of the graph."""


@dataclass(frozen=True, slots=True)
class GraphTarget:
    """How a graph is tested, and the recall that it must reach."""

    sample: int
    """Number of vectors that are searched for."""
    min_recall: float
    """Lowest recall@10 that passes, 0 to 1."""


@dataclass(frozen=True, slots=True)
class GenerationFindings:
    """The recall and the faults of one generation."""

    recall: float
    faults: tuple[str, ...]


def recall_at(by_graph: Sequence[ScoredRows], exact: Sequence[ScoredRows]) -> float:
    """Returns the share of the exact results that the graph found, ties included."""
    exact_results = sum(map(len, exact))
    found = sum(map(_count_as_near, by_graph, exact))
    return found / exact_results if exact_results else 1.0


def _count_as_near(by_graph: ScoredRows, exact: ScoredRows) -> int:
    """Counts the graph's results that are as near as the furthest exact result.

    Distances are compared, not rows, since any of several equal passages is right.
    """
    return sum(distance <= exact[-1][1] for _, distance in by_graph[: len(exact)])


def check_contents(
    directory: Path, manifest: ShardManifest, target: GraphTarget
) -> GenerationFindings:
    """Checks the files of a generation, and that they agree.

    Raises:
        ArtefactError: a file is missing, or damaged.

    """
    for name, entry in manifest.files.items():
        verify(directory / name, entry.sha256, entry.bytes)
    store = PassageStore(OpenFile(directory / manifest.store))
    try:
        store.check(manifest.passages, manifest.dimension, manifest.rows)
        vectors, rows = store.vectors(manifest.dimension), store.row_numbers()
        faults = [*_vector_faults(vectors), *_word_faults(directory, manifest, store)]
        if not store.fields_match_metadata():
            faults.append("its field tables do not match the metadata of its passages")
    finally:
        store.close()
    recall = _graph_recall(directory, manifest, vectors, rows, target.sample)
    if recall < target.min_recall:
        faults.append(
            f"recall@{K} of the graph is {recall:.3f}, but must be at least {target.min_recall}"
        )
    return GenerationFindings(recall, tuple(faults))


def _vector_faults(vectors: NDArray[np.float32]) -> list[str]:
    norms = np.linalg.norm(vectors, axis=1)
    wrong = int((~np.isclose(norms, 1.0, atol=1e-3)).sum())
    return [f"{are(wrong, 'vector')} not of norm one"] if wrong else []


def _word_faults(directory: Path, manifest: ShardManifest, store: PassageStore) -> list[str]:
    if manifest.words is None:
        return []
    vocabulary = len(np.load(directory / manifest.words.frequencies))
    stored = [np.load(directory / name) for name in (manifest.words.tokens, manifest.words.ends)]
    tokens, ends = store.tokens(vocabulary, manifest.rows)
    faults = []
    if not all(map(np.array_equal, stored, (tokens, ends))):
        faults.append("its words do not match the tokens of its passages")
    postings = invert(tokens, ends)
    stored_postings = [np.load(directory / name) for name in manifest.words.posting_files]
    expected: list[NDArray[np.generic]] = [postings.rows, postings.starts, postings.counts]
    if stored_postings and not all(map(np.array_equal, stored_postings, expected)):
        faults.append("its postings do not match its words")
    return faults


def _graph_recall(
    directory: Path,
    manifest: ShardManifest,
    vectors: NDArray[np.float32],
    rows: NDArray[np.int64],
    sample: int,
) -> float:
    if not len(vectors) or manifest.graph is None:
        return 1.0
    file = OpenFile(directory / manifest.graph)
    live_rows = np.zeros(manifest.rows, np.bool_)
    live_rows[rows] = True
    source = open_vectors(file, manifest)
    graph = load_graph(file, manifest.dimension, manifest.rows, _EF, source, live_rows)
    exact = ExactIndex(vectors, rows)
    sampled = np.linspace(0, len(vectors) - 1, min(sample, len(vectors))).astype(int)
    # like a question, a midpoint of two passages is near vectors of passages, but equals none
    queries = vectors[sampled] + vectors[(sampled * 7919 + 1) % len(vectors)]
    queries /= np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), 1e-6)
    # not `search`, which also finds passages that the graph misses
    by_graph = [graph.search_graph(vector, K) or [] for vector in queries]
    return recall_at(by_graph, [exact.search(vector, K) for vector in queries])
