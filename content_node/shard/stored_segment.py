"""A shard's directory as a segment: verified files, passages, indexes of vectors and words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.changes import Change, change_of
from winnow.content_node.shard.equal_passages import equal_passages
from winnow.content_node.shard.graph_vectors import GraphVectors
from winnow.content_node.shard.manifest import ShardManifest, open_shard_manifest
from winnow.content_node.shard.nearest import ExactIndex, NearestIndex, load_graph
from winnow.content_node.shard.row_filter import RowFilter
from winnow.content_node.shard.rows import RowMask
from winnow.content_node.shard.segment import Segment
from winnow.content_node.shard.store import PassageStore, StoredPassage
from winnow.content_node.shard.stored_words import open_words
from winnow.content_node.states.file import StateFile, open_states
from winnow.errors import ArtefactError, GenerationGoneError
from winnow.files.opened import OpenFile
from winnow.policy.byte_bounded_lru import MIB

EXACT_UP_TO = 2_000
"""Passages up to which comparing with all of them is as fast as walking a graph."""
_CONNECTIONS = 8
"""Threads that read passages at the same time. A read takes well below a millisecond, unless it
waits for the disk.
"""
_MASK_BYTES = 8 * MIB
"""Limit of cached masks of filters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment(Segment):
    """Passages on disk that can be searched by encoding and words, and read by row."""

    manifest: ShardManifest
    generation: str
    """The manifest's generation, computed once."""
    store: PassageStore
    built: BuiltRarities
    """How rare words were in the whole index when it was built."""
    states: StateFile | None = None
    """Precomputed states of the passages."""
    files: tuple[OpenFile, ...]
    """All files of the shard; they stay open as long as the segment is held."""

    def change(self) -> Change | None:
        """Returns what changed about the files on disk; None if they are still what is served."""
        return change_of(self.files)

    def named(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        return self.store.named(rows)

    def find(self, passage_id: str, sequence: int) -> int | None:
        found = self.store.entry(passage_id)
        return found.row if found is not None and found.sequence == sequence else None

    def load(self, row: int) -> StoredPassage:
        if self.held is not None and not self.held[row]:
            raise GenerationGoneError(f"row {row} holds no passage any more: retrieve again")
        stored = self.store.load([row])[0]
        if self.states is None or row >= self.states.rows:
            return stored
        return replace(stored, states=self.states.load(row))


def open_shard(
    directory: Path,
    ef: int,
    exact: bool = False,
    exact_up_to: int = EXACT_UP_TO,
    states_of: str = "",
) -> StoredSegment:
    """Verifies every file and loads the shard. Takes seconds per gigabyte: not on an event loop.

    `exact` compares with every vector instead of walking the graph, as shards of at most
    `exact_up_to` passages always do. Every file is opened once and verified by its descriptor, so
    later changes of the directory change no answer. `states_of` is the fingerprint of a reader's
    lower layers; precomputed states of this reader are used if there are any.

    Raises:
        ArtefactError: a file is missing, damaged, or contradicts the manifest.

    """
    try:
        return _open(directory, None if exact else ef, exact_up_to, states_of)
    except ArtefactError:
        raise
    except Exception as error:  # a checksum can be made for any nonsense
        raise ArtefactError(f"{directory} cannot be loaded: {error!r}: build it again") from error


def _open(directory: Path, ef: int | None, exact_up_to: int, states_of: str) -> StoredSegment:
    """Loads a shard; without `ef` it is searched exactly."""
    manifest, named = open_shard_manifest(directory)
    files = {name: OpenFile(directory / name) for name in manifest.files}
    for name, entry in manifest.files.items():
        files[name].verify(entry.sha256, entry.bytes)
    rows, dimension = manifest.rows, manifest.dimension
    store = PassageStore(files[manifest.store], _CONNECTIONS)
    store.expect(manifest.passages, dimension, rows)
    vectors = GraphVectors(files[manifest.graph], dimension, rows)
    words, postings, built = open_words(files, manifest, store)
    held = _held(manifest, store)
    equal = equal_passages(vectors.equal, words.tokens, store.numbers_by_id, rows)
    index: NearestIndex
    if ef is None or manifest.passages <= exact_up_to:
        own = None if held is None else np.flatnonzero(held)
        index = ExactIndex(store.vectors(dimension), own)
    else:
        graph = files[manifest.graph]
        index = load_graph(graph, dimension, rows, ef, vectors, held, equal)
    segment = StoredSegment(
        rows=rows,
        index=index,
        vectors=vectors,
        words=words,
        postings=postings,
        filters=RowFilter(store.fields(rows), rows, _MASK_BYTES),
        equal=equal,
        held=held,
        manifest=manifest,
        generation=manifest.generation,
        store=store,
        built=built,
        states=open_states(directory, manifest.generation, states_of),
        files=(named, *files.values()),
    )
    if change := segment.change():
        raise ArtefactError(change.reason)
    return segment


def _held(manifest: ShardManifest, store: PassageStore) -> RowMask | None:
    """Returns the rows that hold a passage; None where all do."""
    if manifest.rows == manifest.passages:
        return None
    held = np.zeros(manifest.rows, np.bool_)
    held[store.numbers()] = True
    return held
