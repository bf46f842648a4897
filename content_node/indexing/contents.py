"""Checks one generation of a shard: files, counts, vectors, words and recall.

Knows nothing of later writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.graph_vectors import GraphVectors
from winnow.content_node.shard.inverting import invert
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.nearest import ExactIndex, load_graph
from winnow.content_node.shard.rows import ScoredRows
from winnow.content_node.shard.store import PassageStore
from winnow.files.opened import OpenFile, verify
from winnow.quoting import are

K = 10
_EF = 128


@dataclass(frozen=True, slots=True)
class GraphTarget:
    """The recall that a graph has to reach."""

    sample: int
    """The number of vectors that are searched for."""
    min_recall: float
    """The lowest recall@10 that is no fault."""


@dataclass(frozen=True, slots=True)
class IndexContents:
    """The findings in one directory."""

    recall: float
    faults: tuple[str, ...]


def recall_at(by_graph: Sequence[ScoredRows], exact: Sequence[ScoredRows]) -> float:
    """Share of the exact results that the graph found too, or others that are as near."""
    wanted = sum(map(len, exact))
    found = sum(map(_as_near, by_graph, exact))
    return found / wanted if wanted else 1.0


def _as_near(by_graph: ScoredRows, exact: ScoredRows) -> int:
    """How many of the graph's results are as near as the furthest exact one; by distance, since
    any of many equal passages is right.
    """
    return sum(distance <= exact[-1][1] for _, distance in by_graph[: len(exact)])


def check_contents(directory: Path, manifest: ShardManifest, asked: GraphTarget) -> IndexContents:
    """Checks everything that a manifest vouches for.

    Raises:
        ArtefactError: a file is missing, or damaged.

    """
    for name, entry in manifest.files.items():
        verify(directory / name, entry.sha256, entry.bytes)
    store = PassageStore(OpenFile(directory / manifest.store))
    try:
        store.check(manifest.passages, manifest.dimension, manifest.rows)
        vectors, rows = store.vectors(manifest.dimension), store.row_numbers()
        derived = _word_faults(directory, manifest, store)
        if not store.fields_match_metadata():
            derived.append("its fields are not those of its metadata")
    finally:
        store.close()
    faults = [*_vector_faults(vectors), *derived]
    recall = _recall(directory, manifest, vectors, rows, asked.sample)
    if recall < asked.min_recall:
        faults.append(
            f"recall@{K} of the graph is {recall:.3f}, at least {asked.min_recall} is wanted"
        )
    return IndexContents(recall, tuple(faults))


def _vector_faults(vectors: NDArray[np.float32]) -> list[str]:
    norms = np.linalg.norm(vectors, axis=1)
    wrong = int((~np.isclose(norms, 1.0, atol=1e-3)).sum())
    return [f"{are(wrong, 'vector')} not of norm one"] if wrong else []


def _word_faults(directory: Path, manifest: ShardManifest, store: PassageStore) -> list[str]:
    if manifest.words is None:
        return []
    vocabulary = len(np.load(directory / manifest.words.frequencies))
    kept = [np.load(directory / name) for name in (manifest.words.tokens, manifest.words.ends)]
    tokens, ends = store.tokens(vocabulary, manifest.rows)
    faults = []
    if not all(map(np.array_equal, kept, (tokens, ends))):
        faults.append("its words are not those of its passages")
    made = invert(tokens, ends)
    leading = [np.load(directory / name) for name in manifest.words.posting_files]
    right: list[NDArray[np.generic]] = [made.rows, made.starts, made.counts]
    if leading and not all(map(np.array_equal, leading, right)):
        faults.append("its words do not lead to the passages that have them")
    return faults


def _recall(
    directory: Path,
    manifest: ShardManifest,
    vectors: NDArray[np.float32],
    rows: NDArray[np.int64],
    sample: int,
) -> float:
    if not len(vectors):
        return 1.0
    file = OpenFile(directory / manifest.graph)
    held = np.zeros(manifest.rows, np.bool_)
    held[rows] = True
    source = GraphVectors(file, manifest.dimension, manifest.rows)
    graph = load_graph(file, manifest.dimension, manifest.rows, _EF, source, held)
    exact = ExactIndex(vectors, rows)
    chosen = np.linspace(0, len(vectors) - 1, min(sample, len(vectors))).astype(int)
    # midpoints of two passages: like questions, they lie beside the vectors and not on them
    asked = vectors[chosen] + vectors[(chosen * 7919 + 1) % len(vectors)]
    asked /= np.maximum(np.linalg.norm(asked, axis=1, keepdims=True), 1e-6)
    # by the graph alone: `search` would hide that it leads to too few passages
    by_graph = [graph.search_graph(vector, K) or [] for vector in asked]
    return recall_at(by_graph, [exact.search(vector, K) for vector in asked])
