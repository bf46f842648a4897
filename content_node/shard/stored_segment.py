"""A shard's directory as a segment: verified files, passages, indexes of vectors and words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.attributes import Attributes
from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.changes import Change, change_of
from winnow.content_node.shard.equal_passages import EqualPassages, equal_passages
from winnow.content_node.shard.graph_vectors import GraphVectors
from winnow.content_node.shard.manifest import ShardManifest, open_shard_manifest
from winnow.content_node.shard.nearest import ExactIndex, NearestIndex, distances_of, load_graph
from winnow.content_node.shard.postings import Postings
from winnow.content_node.shard.segment import Found, Rows, Terms, Vector
from winnow.content_node.shard.store import PassageStore, StoredPassage
from winnow.content_node.shard.stored_words import open_words
from winnow.content_node.shard.words import WordIndex
from winnow.content_node.states.file import StateFile, open_states
from winnow.errors import ArtefactError, GenerationGoneError
from winnow.files.opened import OpenFile
from winnow.inference.stop import Stop

EXACT_UP_TO = 2_000
"""Passages up to which comparing with all of them is as fast as walking a graph."""
_CONNECTIONS = 8
"""Threads that read passages at the same time: each takes well below a millisecond, unless the disk
has to be waited for.
"""


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """Passages on disk that can be searched by encoding and words, and read by row."""

    manifest: ShardManifest
    store: PassageStore
    index: NearestIndex
    vectors: GraphVectors
    words: WordIndex
    postings: Postings
    built: BuiltRarities
    """How rare words were in the whole index when it was built."""
    attributes: Attributes
    """The metadata, as filters see it."""
    equal: EqualPassages
    """Passages that equal many others."""
    held: Rows | None = None
    """The rows that hold a passage; None where all do."""
    states: StateFile | None = None
    """What a reader's lower layers make of the passages, computed beforehand."""
    files: tuple[OpenFile, ...] = ()
    """All of which it was loaded; open as long as the segment is held."""
    generation: str = field(init=False)
    """Of the manifest, worked out once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "generation", self.manifest.generation)

    @property
    def rows(self) -> int:
        return self.manifest.rows

    @property
    def fields(self) -> tuple[str, ...]:
        return self.attributes.names

    def change(self) -> Change | None:
        """What became of the files on disk; None where they are still what is served."""
        return change_of(self.files)

    def thinned(self, allowed: Rows | None, most: int) -> Rows | None:
        return self.equal.thinned(allowed, most)

    def nearest(
        self, vector: Vector, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        return self.index.nearest(vector, k, self._holding(allowed), stop)

    def best_by_words(
        self, terms: Terms, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        return self.postings.best(terms, k, self._holding(allowed), stop)

    def distances(self, vector: Vector, rows: Sequence[int]) -> NDArray[np.float32]:
        return distances_of(self.vectors, vector, rows)

    def match(self, terms: Terms, rows: Sequence[int]) -> NDArray[np.float64]:
        return self.words.match(terms, rows)

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

    def where(self, expression: str, stop: Stop | None = None) -> Rows:
        return self.attributes.where(expression, stop)

    def _holding(self, allowed: Rows | None) -> Rows | None:
        if self.held is None or allowed is None:
            return self.held if allowed is None else allowed
        return self.held & allowed


def open_shard(
    directory: Path,
    ef: int,
    exact: bool = False,
    exact_up_to: int = EXACT_UP_TO,
    states_of: str = "",
) -> StoredSegment:
    """Verifies every file and loads the shard. Takes seconds per gigabyte: not on an event loop.

    `exact` compares with every vector instead of walking the graph, as shards of at most
    `exact_up_to` passages always do. Every file is opened once and verified by its descriptor:
    nothing that becomes of the directory later changes an answer. `states_of` is the fingerprint
    of a reader's lower layers, whose states are used if they are there.

    Raises:
        ArtefactError: a file is missing, damaged, or contradicts the manifest; nothing else.

    """
    try:
        segment = _open(directory, ef, exact, exact_up_to)
        states = open_states(directory, segment.generation, states_of)
        return replace(segment, states=states) if states else segment
    except ArtefactError:
        raise
    except Exception as error:  # a checksum can be made for any nonsense
        raise ArtefactError(f"{directory} cannot be loaded: {error!r}: build it again") from error


def _open(directory: Path, ef: int, exact: bool, exact_up_to: int) -> StoredSegment:
    manifest, named = open_shard_manifest(directory)
    files = {name: OpenFile(directory / name) for name in manifest.files}
    for name, entry in manifest.files.items():
        files[name].verify(entry.sha256, entry.bytes)
    store = PassageStore(files[manifest.store], _CONNECTIONS)
    store.expect(manifest.passages, manifest.dimension, manifest.rows)
    vectors = GraphVectors(files[manifest.graph], manifest.dimension, manifest.rows)
    words, postings, built = open_words(files, manifest, store)
    held = _held(manifest, store)
    exact = exact or manifest.passages <= exact_up_to
    equal = equal_passages(vectors.equal, words.tokens, store.numbers_by_id, manifest.rows)
    index = _index(files, manifest, store, vectors, held, equal, None if exact else ef)
    attributes = store.attributes(manifest.rows)
    opened = (named, *files.values())
    segment = StoredSegment(
        manifest,
        store,
        index,
        vectors,
        words,
        postings,
        built,
        attributes,
        equal,
        held,
        files=opened,
    )
    if change := segment.change():
        raise ArtefactError(change.reason)
    return segment


def _held(manifest: ShardManifest, store: PassageStore) -> Rows | None:
    if manifest.rows == manifest.passages:
        return None
    held = np.zeros(manifest.rows, np.bool_)
    held[store.numbers()] = True
    return held


def _index(
    files: Mapping[str, OpenFile],
    manifest: ShardManifest,
    store: PassageStore,
    vectors: GraphVectors,
    held: Rows | None,
    equal: EqualPassages,
    ef: int | None,
) -> NearestIndex:
    """Exact without `ef`."""
    if ef is not None:
        graph = files[manifest.graph]
        return load_graph(graph, manifest.dimension, manifest.rows, ef, vectors, held, equal)
    rows = None if held is None else np.flatnonzero(held)
    return ExactIndex(store.vectors(manifest.dimension), rows)
