"""An opened shard: verified files, passages and the indexes over their vectors and words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from content_node.shard.changes import Change, change_of
from content_node.shard.contenders import contenders
from content_node.shard.manifest import ShardManifest, open_shard_manifest
from content_node.shard.nearest import ExactIndex, NearestIndex, load_graph
from content_node.shard.store import PassageStore
from content_node.shard.words import WordIndex, load_words
from winnow.domain.passage import Hit
from winnow.domain.question import Depth, EncodedQuestion
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.inference.stop import Stop

EXACT_UP_TO = 2_000
"""Passages up to which comparing with all of them is as fast as walking a graph."""
_CONNECTIONS = 8
"""Threads that read passages at the same time: each takes well below a millisecond, unless the disk
has to be waited for.
"""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a shard has near a question."""

    hits: tuple[Hit, ...]
    """All that may be chosen to be read, whatever other shards have; best first."""
    distances: tuple[float, ...]
    """Of all candidates, nearest first."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Passages that can be searched by encoding and words, and read by row."""

    manifest: ShardManifest
    store: PassageStore
    index: NearestIndex
    words: WordIndex | None = None
    files: tuple[OpenFile, ...] = ()
    """All of which it was loaded; open as long as the shard is held."""
    generation: str = field(init=False)
    """Of the manifest, worked out once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "generation", self.manifest.generation)

    def change(self) -> Change | None:
        """What became of the files on disk; None where they are still what is served."""
        return change_of(self.files)

    def retrieve(
        self,
        question: EncodedQuestion,
        depth: Depth,
        word_weight: float,
        stop: Stop | None = None,
    ) -> Candidates:
        """The candidates of this shard, and those of them that may be read.

        `word_weight` is the squared distance that one unit of BM25 is worth.

        Raises:
            StoppedError: `stop` was set before all vectors were compared.
            ArtefactError: a file was written to since it was verified.

        """
        words = self.words if word_weight and depth.candidates else None
        looked_at = depth.looked_at if words else depth.passages
        found = self.index.search(question.vector, looked_at, stop)
        rows = [row for row, _ in found]
        distances = np.array([distance for _, distance in found], np.float32)
        matches = words.match(question.token_ids, rows) if words else np.zeros(len(rows))
        # single precision, as on the wire: the same order on a node and in the front
        hybrid = (distances - word_weight * matches).astype(np.float32)
        kept = contenders(distances, hybrid, depth.passages)
        ids = self.store.ids([rows[place] for place in kept])
        hits = (
            Hit(
                rows[place],
                identifier,
                float(distances[place]),
                float(hybrid[place]),
                self.generation,
            )
            for place, identifier in zip(kept, ids, strict=True)
        )
        best_first = sorted(hits, key=lambda hit: (hit.hybrid_distance, hit.passage_id))
        return Candidates(tuple(best_first), tuple(distances.tolist()))


def open_shard(
    directory: Path, ef: int, exact: bool = False, exact_up_to: int = EXACT_UP_TO
) -> Shard:
    """Verifies every file and loads the shard. Takes seconds per gigabyte: not on an event loop.

    `exact` compares with every vector instead of walking the graph, as shards of at most
    `exact_up_to` passages always do. Every file is opened once and verified by its descriptor:
    nothing that becomes of the directory later changes an answer.

    Raises:
        ArtefactError: a file is missing, damaged, or contradicts the manifest; nothing else.

    """
    try:
        return _open(directory, ef, exact, exact_up_to)
    except ArtefactError:
        raise
    except Exception as error:  # a checksum can be made for any nonsense
        raise ArtefactError(f"{directory} cannot be loaded: {error!r}: build it again") from error


def _open(directory: Path, ef: int, exact: bool, exact_up_to: int) -> Shard:
    manifest, named = open_shard_manifest(directory)
    files = {name: OpenFile(directory / name) for name in manifest.files}
    for name, entry in manifest.files.items():
        files[name].verify(entry.sha256, entry.bytes)
    store = PassageStore(files[manifest.store], _CONNECTIONS)
    store.expect(manifest.passages, manifest.dimension)
    exact = exact or manifest.passages <= exact_up_to
    index = _index(files, manifest, store, ef, exact)
    shard = Shard(manifest, store, index, _words(files, manifest), (named, *files.values()))
    if change := shard.change():
        raise ArtefactError(change.reason)
    return shard


def _index(
    files: Mapping[str, OpenFile],
    manifest: ShardManifest,
    store: PassageStore,
    ef: int,
    exact: bool,
) -> NearestIndex:
    if exact:
        return ExactIndex(store.vectors(manifest.dimension))
    chunks = partial(store.vector_chunks, manifest.dimension)
    return load_graph(files[manifest.graph], manifest.dimension, manifest.passages, ef, chunks)


def _words(files: Mapping[str, OpenFile], manifest: ShardManifest) -> WordIndex | None:
    if manifest.words is None:
        return None
    passages = manifest.index_passages or manifest.passages
    return load_words(files, manifest.words, manifest.passages, passages)
