"""Retrievers of candidates for training questions: by words alone, and as an index is served.

Knows tantivy and shards; offline only.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tantivy
from numpy.typing import NDArray

from models.data import Passage
from winnow.bundle import Bundle
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.content_node.shard.retrieving import retrieve
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import shard_name
from winnow.text.tokenizer import Tokenizer


class LexicalIndex:
    """Passages by the words of their title and text."""

    def __init__(self, passages: Iterable[Passage], directory: Path | None = None) -> None:
        builder = tantivy.SchemaBuilder()
        for field in ("title", "text"):
            builder.add_text_field(field, stored=True, tokenizer_name="en_stem")
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        self._index = tantivy.Index(builder.build(), path=str(directory) if directory else None)
        writer = self._index.writer(heap_size=512_000_000)
        for passage in passages:
            writer.add_document(tantivy.Document(title=passage.title, text=passage.text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, question: str, k: int) -> list[Passage]:
        """Returns the best `k` passages for any of the question's words."""
        words = " ".join(re.findall(r"\w+", question.lower()))
        query = self._index.parse_query(words, ["title", "text"])
        found = self._searcher.search(query, k).hits
        documents = [self._searcher.doc(address) for _, address in found]
        return [Passage(str(d.get_first("title")), str(d.get_first("text"))) for d in documents]


CANDIDATES = 100
"""Candidates by encoding, and as many by words: the default of a front node."""
_EF = 256
_SPECIAL = 2


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage, and why it was found."""

    passage: Passage
    distance: float
    """Squared distance of the encodings."""
    words: float
    """BM25."""


class ServedRetriever:
    """The best passages of an index. Safe to use from several threads."""

    def __init__(self, index: Path, bundle: Bundle) -> None:
        """Opens every shard; raises ArtefactError if one is damaged."""
        shards = read_index_manifest(index).shards
        self._views = [
            view_of(open_shard(index / shard_name(shard, shards), _EF)) for shard in range(shards)
        ]
        self._tokenizer, manifest = Tokenizer(bundle.tokenizer), bundle.manifest
        self._most = manifest.encoder.max_question_tokens - _SPECIAL
        self._word_weight = manifest.retrieval.words

    def find(self, question: str, vector: NDArray[np.float32], k: int) -> Sequence[FoundPassage]:
        """Returns the best `k` passages, best first; `vector` is the question's."""
        ids = self._tokenizer.tokenise(question).ids[: self._most]
        asked = EncodedQuestion(text=question, token_ids=ids, vector=vector, bundle_fingerprint="")
        depth = RetrievalDepth(passages=k, candidates=CANDIDATES, by_words=CANDIDATES)
        hits = [
            (hit, view)
            for view in self._views
            for hit in retrieve(view, asked, depth, self._word_weight).hits
        ]
        hits.sort(key=lambda pair: (pair[0].hybrid_distance, pair[0].passage_id))
        found = []
        for hit, view in hits[:k]:
            passage = view.load(hit.row).passage
            own = Passage(passage.title, passage.text)
            found.append(FoundPassage(own, hit.distance, hit.words))
        return found


def found_before(path: Path) -> Iterator[tuple[str, list[FoundPassage]]]:
    """Yields every question of a file with what was found for it; half a line at its end is cut
    off.
    """
    if not path.exists():
        return
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    path.write_bytes(whole + b"\n" if whole else b"")
    for line in whole.splitlines():
        row = json.loads(line)
        yield (
            row["question"],
            [
                FoundPassage(Passage(**each["passage"]), each["distance"], each["words"])
                for each in row["found"]
            ],
        )
