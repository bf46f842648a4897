"""Checking a built index: checksums, counts, vectors, words, recall of the graphs.

Knows how to find faults; says them, and leaves exit codes to the command line.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from content_node.shard.graph_vectors import GraphVectors
from content_node.shard.inverting import inverted
from content_node.shard.manifest import (
    IndexManifest,
    ShardManifest,
    read_index_manifest,
    read_shard_manifest,
)
from content_node.shard.nearest import ExactIndex, load_graph
from content_node.shard.store import PassageStore
from winnow.domain.layout import shard_name
from winnow.errors import ArtefactError
from winnow.files.checksum import verify
from winnow.files.opened import OpenFile

K = 10
_EF = 128


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What was found in one shard."""

    shard: int
    passages: int
    recall: float
    faults: tuple[str, ...]


def verify_index(directory: Path, sample: int, min_recall: float) -> list[ShardReport]:
    """Checks every shard; `sample` vectors of each are searched for.

    Raises:
        ArtefactError: there is no readable index manifest.

    """
    index = read_index_manifest(directory)
    reports = [
        _verify_shard(directory / shard_name(shard, index.shards), shard, index, sample, min_recall)
        for shard in range(index.shards)
    ]
    total = sum(report.passages for report in reports)
    if total != index.passages and not any(report.faults for report in reports):
        fault = f"the shards hold {total} passages, the index manifest says {index.passages}"
        reports[0] = ShardReport(reports[0].shard, reports[0].passages, reports[0].recall, (fault,))
    return reports


def recall_at(graph_rows: list[list[int]], exact_rows: list[list[int]]) -> float:
    """Share of the exact results that the graph found too."""
    wanted = sum(map(len, exact_rows))
    found = sum(len(set(g) & set(e)) for g, e in zip(graph_rows, exact_rows, strict=True))
    return found / wanted if wanted else 1.0


def _verify_shard(
    directory: Path, shard: int, index: IndexManifest, sample: int, min_recall: float
) -> ShardReport:
    try:
        manifest = read_shard_manifest(directory)
        for name, entry in manifest.files.items():
            verify(directory / name, entry.sha256, entry.bytes)
        return _verify_contents(directory, manifest, shard, index, sample, min_recall)
    except ArtefactError as error:
        return ShardReport(shard, 0, 0.0, (str(error),))
    except Exception as error:  # noqa: BLE001 (a checksum can be made for any nonsense)
        return ShardReport(shard, 0, 0.0, (f"it cannot be read: {error!r}",))


def _verify_contents(
    directory: Path,
    manifest: ShardManifest,
    shard: int,
    index: IndexManifest,
    sample: int,
    min_recall: float,
) -> ShardReport:
    store = PassageStore(OpenFile(directory / manifest.store))
    try:
        store.expect(manifest.passages, manifest.dimension, manifest.rows)
        vectors, rows = store.vectors(manifest.dimension), store.numbers()
        derived = _word_faults(directory, manifest, store)
        if not store.attributes_are_right():
            derived.append("its fields are not those of its metadata")
    finally:
        store.close()
    faults = [*identity_faults(manifest, shard, index), *_vector_faults(vectors), *derived]
    recall = _recall(directory, manifest, vectors, rows, sample)
    if recall < min_recall:
        faults.append(f"recall@{K} of the graph is {recall:.3f}, at least {min_recall} is wanted")
    return ShardReport(shard, manifest.passages, recall, tuple(faults))


def identity_faults(manifest: ShardManifest, shard: int, index: IndexManifest) -> list[str]:
    """Why this is not that shard of the index."""
    faults = []
    if (manifest.shard, manifest.shards) != (shard, index.shards):
        faults.append(f"it calls itself shard {manifest.shard} of {manifest.shards}")
    if manifest.index_id != index.index_id:
        faults.append(f"it belongs to index {manifest.index_id}, not {index.index_id}")
    if manifest.encoding_fingerprint != index.encoding_fingerprint:
        faults.append(f"it was encoded by {manifest.encoding_fingerprint}")
    if not faults and index.manifests and manifest.checksum != index.manifests[shard]:
        faults.append("it is not the shard that the index was built with: copy that one again")
    return faults


def _vector_faults(vectors: NDArray[np.float32]) -> list[str]:
    norms = np.linalg.norm(vectors, axis=1)
    wrong = int((~np.isclose(norms, 1.0, atol=1e-3)).sum())
    return [f"{wrong} vectors are not of norm one"] if wrong else []


def _word_faults(directory: Path, manifest: ShardManifest, store: PassageStore) -> list[str]:
    if manifest.words is None:
        return []
    vocabulary = len(np.load(directory / manifest.words.frequencies))
    kept = [np.load(directory / name) for name in (manifest.words.tokens, manifest.words.ends)]
    tokens, ends = store.words(vocabulary, manifest.rows)
    faults = []
    if not all(map(np.array_equal, kept, (tokens, ends))):
        faults.append("its words are not those of its passages")
    made = inverted(tokens, ends)
    leading = [np.load(directory / name) for name in manifest.words.inverted]
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
    # by the graph alone: where it leads to too few, search would hide that
    by_graph = [[row for row, _ in graph.walk(vector, K) or ()] for vector in asked]
    by_hand = [[row for row, _ in exact.search(vector, K)] for vector in asked]
    return recall_at(by_graph, by_hand)
