"""An opened shard: verified files, passages and an index over their vectors."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from content_node.shard.manifest import ShardManifest, read_shard_manifest
from content_node.shard.nearest import ExactIndex, NearestIndex, load_graph
from content_node.shard.store import PassageStore
from winnow.checksum import verify
from winnow.domain.passage import Hit
from winnow.errors import ArtefactError

EXACT_UP_TO = 2_000
"""Passages up to which comparing with all of them is as fast as walking a graph."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Passages that can be searched by vector and read by row."""

    manifest: ShardManifest
    store: PassageStore
    index: NearestIndex

    def nearest(self, vector: NDArray[np.float32], k: int) -> tuple[Hit, ...]:
        """The `k` nearest passages; fewer if the shard is smaller."""
        found = self.index.search(vector, k)
        ids = self.store.ids([row for row, _ in found])
        generation = self.manifest.generation
        return tuple(
            Hit(row, identifier, distance, generation)
            for (row, distance), identifier in zip(found, ids, strict=True)
        )


def open_shard(directory: Path, ef: int, exact: bool = False) -> Shard:
    """Verifies every file and loads the shard. Takes seconds per gigabyte: not on an event loop.

    `exact` compares with every vector instead of walking the graph; small shards always do.

    Raises:
        ArtefactError: a file is missing, damaged, or contradicts the manifest.

    """
    manifest = read_shard_manifest(directory)
    for name, entry in manifest.files.items():
        verify(directory / name, entry.sha256, entry.bytes)
    store = PassageStore(directory / manifest.store)
    if store.count() != manifest.passages:
        raise ArtefactError(
            f"{directory} holds {store.count()} passages, its manifest says {manifest.passages}"
        )
    return Shard(manifest, store, _index(directory, manifest, store, ef, exact))


def _index(
    directory: Path, manifest: ShardManifest, store: PassageStore, ef: int, exact: bool
) -> NearestIndex:
    if exact or manifest.passages <= EXACT_UP_TO:
        return ExactIndex(store.vectors(manifest.dimension))
    path = directory / manifest.graph
    return load_graph(path, manifest.dimension, manifest.passages, ef)
