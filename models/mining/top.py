"""What the served retriever finds for a question in an index: what a reader will meet."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.data.rows import Passage
from winnow.bundle import Bundle
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.content_node.shard.retrieving import retrieve
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import shard_name
from winnow.text.tokenizer import Tokenizer

CANDIDATES = 100
"""By encoding, and as many by words, as a front node has it by default."""
_EF = 256
_SPECIAL = 2


@dataclass(frozen=True, slots=True)
class Found:
    """A passage, and why it was found."""

    passage: Passage
    distance: float
    """Squared distance of the encodings."""
    words: float
    """BM25."""


class Top:
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

    def find(self, question: str, vector: NDArray[np.float32], k: int) -> Sequence[Found]:
        """The best `k` passages, best first; `vector` is the question's."""
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
            found.append(Found(own, hit.distance, hit.words))
        return found


def found_before(path: Path) -> Iterator[tuple[str, list[Found]]]:
    """Every question of a file with what was found for it; half a line at its end is cut off."""
    if not path.exists():
        return
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    path.write_bytes(whole + b"\n" if whole else b"")
    for line in whole.splitlines():
        row = json.loads(line)
        yield (
            row["question"],
            [
                Found(Passage(**each["passage"]), each["distance"], each["words"])
                for each in row["found"]
            ],
        )
