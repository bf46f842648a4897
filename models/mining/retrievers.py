"""Retrieves passages for training questions, by words alone or with a served index."""

import hashlib
import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tantivy
from numpy.typing import NDArray

from models.data import Passage
from winnow.bundle import Bundle, Manifest
from winnow.content_node.live.word_counts import word_counts_at_build
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.content_node.shard.retrieving import retrieve
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import shard_name
from winnow.errors import ArtefactError
from winnow.text.encoder import SPECIAL_TOKENS
from winnow.text.index_counts import IndexCounts
from winnow.text.tokenizer import Tokenizer


class LexicalIndex:
    """An in-memory index of passages by the words of title and text."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        builder = tantivy.SchemaBuilder()
        for field in ("title", "text"):
            builder.add_text_field(field, stored=True, tokenizer_name="en_stem")
        self._index = tantivy.Index(builder.build())
        writer = self._index.writer(heap_size=512_000_000)
        for passage in passages:
            writer.add_document(tantivy.Document(title=passage.title, text=passage.text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, question: str, k: int) -> list[Passage]:
        """Returns the best `k` passages with any of the question's words."""
        words = " ".join(re.findall(r"\w+", question.lower()))
        query = self._index.parse_query(words, ["title", "text"])
        hits = self._searcher.search(query, k).hits
        documents = [self._searcher.doc(address) for _, address in hits]
        return [Passage(str(d.get_first("title")), str(d.get_first("text"))) for d in documents]


CANDIDATES = 100
"""Number of candidates by vector and of candidates by words, the default of a front node."""
_ALL = 2 * CANDIDATES
"""Number of passages to retrieve from a shard: all candidates of both kinds."""
_EF = 256
"""HNSW search width (ef)."""


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A retrieved passage with its scores. Field names are keys on disk."""

    passage: Passage
    distance: float
    """Squared distance of the vectors."""
    words: float
    """BM25 score."""


class ServedRetriever:
    """Retrieves the best passages of one or several indexes. Thread-safe."""

    def __init__(self, indexes: Sequence[Path], bundle: Bundle) -> None:
        """Opens every shard. Words have the rarity that they have in the first index.

        Raises:
            ArtefactError: a shard is damaged, or an index was encoded by another encoder.
            NotLoadedError: a shard of the first index has no word counts.

        """
        shards = [shard for index in indexes for shard in _shards_of(index, bundle.manifest)]
        segments = [open_shard(shard, _EF) for shard in shards]
        self._views = [view_of(segment) for segment in segments]
        self._counts = IndexCounts.of(word_counts_at_build(segments[0]), [])
        self._tokenizer, manifest = Tokenizer(bundle.tokenizer), bundle.manifest
        self._max_question_tokens = manifest.encoder.max_question_tokens - SPECIAL_TOKENS
        self._word_weight = manifest.retrieval.words

    @property
    def fingerprint(self) -> str:
        """Identifies the passages and vectors of all shards."""
        generations = " ".join(view.generation for view in self._views)
        return hashlib.sha256(generations.encode()).hexdigest()[:16]

    def find(self, question: str, vector: NDArray[np.float32], k: int) -> Sequence[ScoredPassage]:
        """Returns the best `k` passages for a question and its vector, best first.

        They are among the `CANDIDATES` nearest or the `CANDIDATES` best by words.
        """
        ids = self._tokenizer.tokenise(question).ids[: self._max_question_tokens]
        encoded = EncodedQuestion(
            text=question, token_ids=ids, vector=vector, bundle_fingerprint=""
        )
        encoded = self._counts.weigh(encoded)
        depth = RetrievalDepth(passages=_ALL, candidates=CANDIDATES, by_words=CANDIDATES)
        hits = [
            (hit, view)
            for view in self._views
            for hit in retrieve(view, encoded, depth, self._word_weight).hits
        ]
        nearest = heapq.nsmallest(CANDIDATES, hits, key=lambda pair: pair[0].distance)
        by_words = heapq.nlargest(CANDIDATES, hits, key=lambda pair: pair[0].words)
        # not by id alone: two indexes may give one id to different passages
        candidates = {(id(view), hit.row): (hit, view) for hit, view in (*nearest, *by_words)}
        best = heapq.nsmallest(
            k, candidates.values(), key=lambda pair: (pair[0].hybrid_distance, pair[0].passage_id)
        )
        stored = [(hit, view.load(hit.row).passage) for hit, view in best]
        return [
            ScoredPassage(Passage(passage.title, passage.text), hit.distance, hit.words)
            for hit, passage in stored
        ]


def _shards_of(index: Path, bundle: Manifest) -> list[Path]:
    """Returns the shards of an index; raises ArtefactError if another encoder encoded it."""
    manifest = read_index_manifest(index)
    if manifest.encoding_fingerprint != bundle.encoding_fingerprint:
        raise ArtefactError(
            f"{index} was encoded by bundle {manifest.bundle_name} "
            f"({manifest.encoding_fingerprint}), not by {bundle.name} "
            f"({bundle.encoding_fingerprint}): build the index again with {bundle.name}"
        )
    return [index / shard_name(shard, manifest.shards) for shard in range(manifest.shards)]
