"""A segment on disk: the verified files of a shard, its passages, vectors and words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.changes import FileChange, find_change
from winnow.content_node.shard.equal_passages import find_equal_passages
from winnow.content_node.shard.graph_vectors import GraphVectors
from winnow.content_node.shard.hnsw import can_use_graphs, check_graphless
from winnow.content_node.shard.manifest import ShardManifest, open_shard_manifest
from winnow.content_node.shard.nearest import ExactIndex, NearestIndex, load_graph
from winnow.content_node.shard.row_filter import RowFilter
from winnow.content_node.shard.row_names import RowNames
from winnow.content_node.shard.rows import RowMask, RowNumbers
from winnow.content_node.shard.segment import Segment
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.shard.stored_vectors import StoredVectors
from winnow.content_node.shard.stored_words import open_words
from winnow.content_node.shard.table_vectors import TableVectors
from winnow.content_node.states.file import StateFile, open_states
from winnow.domain.listing import SelectedFields
from winnow.domain.passage import Passage
from winnow.domain.shard import EXACT_UP_TO
from winnow.errors import ArtefactError, GenerationGoneError
from winnow.files.opened import OpenFile
from winnow.policy.byte_bounded_lru import MIB
from winnow.reading.states_kind import TOKEN_VECTORS
from winnow.reading.stored_passage import StoredPassage

_CONNECTIONS = 8
"""Number of SQLite connections, and so of threads that can read passages at the same time.

A read takes well below a millisecond, unless it waits for the disk.
"""
_SMALL_CONNECTIONS = 2
"""Number of connections of a small shard: a node may have hundreds, and a connection takes 25 KiB
besides the pages that it has read. The files of a small shard are mostly in memory.
"""
_EF, _LATE_EF = 256, 128
"""Default search widths of graphs, without and with token vectors.

Late interaction hardly ever ranks the last of the nearest passages among the first.
"""
_MASK_BYTES = 8 * MIB
"""Limit of cached filter masks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment(Segment):
    """Passages on disk."""

    manifest: ShardManifest
    generation: str
    """The manifest's generation, computed once."""
    store: PassageStore
    names: RowNames
    built_rarities: BuiltRarities
    states: StateFile | None = None
    """Precomputed states of the passages."""
    files: tuple[OpenFile, ...]
    """All files of the shard, which stay open as long as the segment is referenced."""

    def file_change(self) -> FileChange | None:
        """Returns how the files on disk differ from the open ones; None if they do not."""
        return find_change(self.files)

    def ids_and_sequences(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        return self.names.ids_and_sequences(rows)

    def find_row(self, passage_id: str, sequence: int) -> int | None:
        location = self.store.locate(passage_id)
        return location.row if location and location.sequence == sequence else None

    def rows_of(self, passage_id: str) -> Sequence[int]:
        location = self.store.locate(passage_id)
        return () if location is None else (location.row,)

    def rows_after(self, passage_id: str) -> RowNumbers:
        return self.names.rows_after(passage_id)

    def rows_with_prefix(self, prefix: str) -> RowNumbers:
        return self.names.rows_with_prefix(prefix)

    def load_fields(self, rows: Sequence[int], fields: SelectedFields) -> list[Passage]:
        return self.store.load_fields(rows, fields)

    def content_bytes(self, rows: Sequence[int]) -> int:
        return self.store.content_bytes(rows)

    def load(self, row: int) -> StoredPassage:
        if self.occupied_rows is not None and not self.occupied_rows[row]:
            raise GenerationGoneError(f"the passage of row {row} was removed: retrieve again")
        stored = self.store.load([row])[0]
        if self.states is None or row >= self.states.rows:
            return stored
        return replace(stored, states=self.states.load(row))


def open_shard(
    directory: Path,
    ef: int,
    exact: bool = False,
    exact_up_to: int = EXACT_UP_TO,
    lower_layers_fingerprint: str = "",
    token_vectors_fingerprint: str = "",
) -> StoredSegment:
    """Verifies every file and loads the shard. Takes seconds per gigabyte: not on an event loop.

    `ef` is the search width of the graph, or `DEFAULT_EF`. `exact` compares with every vector
    instead of searching the graph. Shards of at most `exact_up_to` passages are always searched
    exactly. Every file is opened once and verified by its descriptor, so later changes of the
    directory change no answer. Precomputed states are used if they were computed by lower layers
    with the fingerprint `lower_layers_fingerprint`, and token vectors if their fingerprint is
    `token_vectors_fingerprint`.

    Raises:
        ArtefactError: a file is missing, damaged, or contradicts the manifest.

    """
    try:
        segment = _open_segment(
            directory, None if exact else ef, exact_up_to, token_vectors_fingerprint
        )
        states = open_states(directory, segment.generation, lower_layers_fingerprint)
        return replace(segment, states=states)
    except ArtefactError:
        raise
    except Exception as error:  # a file with a valid checksum may still have invalid content
        raise ArtefactError(
            f"{directory} cannot be loaded: {error!r}: build the index again"
        ) from error


def _open_token_vectors(
    directory: Path, manifest: ShardManifest, fingerprint: str
) -> StateFile | None:
    """Opens token vectors; None without those of every passage.

    Computing many of them for a question would take seconds.
    """
    found = open_states(directory, manifest.generation, fingerprint, TOKEN_VECTORS)
    complete = found is not None and found.passages == manifest.passages
    return found if complete else None


def _open_segment(
    directory: Path, ef: int | None, exact_up_to: int, token_vectors_fingerprint: str
) -> StoredSegment:
    """Loads a shard without its states; if `ef` is None, the shard is searched exactly."""
    manifest, manifest_file = open_shard_manifest(directory)
    files = {name: OpenFile(directory / name) for name in manifest.files}
    for name, entry in manifest.files.items():
        files[name].verify(entry.sha256, entry.bytes)
    rows, dimension = manifest.rows, manifest.dimension
    small = rows <= EXACT_UP_TO
    store = PassageStore(files[manifest.store], _SMALL_CONNECTIONS if small else _CONNECTIONS)
    store.check(manifest.passages, dimension, rows)
    vectors = open_vectors(files[manifest.vector_file], manifest)
    words, postings, built = open_words(files, manifest, store)
    occupied_rows = _occupied_rows(manifest, store)
    equal = find_equal_passages(vectors.equal_groups, words.tokens, store.row_numbers_by_id, rows)
    token_vectors = _open_token_vectors(directory, manifest, token_vectors_fingerprint)
    index: NearestIndex
    graph = None if ef is None else _graph_to_search(files, manifest, exact_up_to)
    if ef is None or graph is None:
        index = ExactIndex(
            store.vectors(dimension),
            None if occupied_rows is None else np.flatnonzero(occupied_rows),
        )
    else:
        width = ef or (_EF if token_vectors is None else _LATE_EF)
        index = load_graph(graph, dimension, rows, width, vectors, occupied_rows, equal)
    segment = StoredSegment(
        rows=rows,
        index=index,
        vectors=vectors,
        words=words,
        postings=postings,
        row_filter=RowFilter(store.open_fields(rows), rows, _MASK_BYTES),
        equal_passages=equal,
        occupied_rows=occupied_rows,
        token_vectors=token_vectors,
        manifest=manifest,
        generation=manifest.generation,
        store=store,
        names=store.row_names(rows),
        built_rarities=built,
        files=(manifest_file, *files.values()),
    )
    if change := segment.file_change():
        raise ArtefactError(change.reason)
    store.free_caches()
    return segment


def _graph_to_search(
    files: Mapping[str, OpenFile], manifest: ShardManifest, exact_up_to: int
) -> OpenFile | None:
    """Returns the file of the graph; None if the shard is to be searched exactly.

    Raises ArtefactError if the shard is too large for that, but hnswlib is not installed.
    """
    if manifest.graph is None or manifest.passages <= exact_up_to:
        return None
    check_graphless("the shard", manifest.passages, "start the node with --exact")
    return files[manifest.graph] if can_use_graphs() else None


def open_vectors(file: OpenFile, manifest: ShardManifest) -> StoredVectors:
    """Opens the vectors of a shard; raises ArtefactError if they contradict the manifest."""
    kind = TableVectors if manifest.graph is None else GraphVectors
    return kind(file, manifest.dimension, manifest.rows)


def _occupied_rows(manifest: ShardManifest, store: PassageStore) -> RowMask | None:
    """Returns the rows that hold a passage; None if every row does."""
    if manifest.rows == manifest.passages:
        return None
    occupied_rows = np.zeros(manifest.rows, np.bool_)
    occupied_rows[store.row_numbers()] = True
    return occupied_rows
