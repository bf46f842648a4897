"""Made-up shards of any size: the demo passages over and over, with vectors of their own.

Nothing is encoded, so that a hundred thousand passages are there in seconds. Words and lengths are
those of real text. Vectors lie in few directions, as those of texts do: a graph over vectors
without any order would be slower than one over texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, publish_shard
from winnow.passages.rows import Row
from winnow.text.tokenizer import Tokenizer, Tokens

DIRECTIONS = 32
"""In which vectors differ most: estimates for sentence encoders lie between 20 and 40."""
_NOISE = 0.3
_BATCH = 4_096


@dataclass(frozen=True, slots=True)
class Text:
    """A passage and its tokens."""

    row: Row
    title: Tokens
    text: Tokens


def tokenised(rows: Sequence[Row], tokenizer: Tokenizer) -> list[Text]:
    """Passages with their tokens."""
    titles = tokenizer.tokenise_many([row.passage.title for row in rows])
    texts = tokenizer.tokenise_many([row.passage.text for row in rows])
    return [Text(*each) for each in zip(rows, titles, texts, strict=True)]


class Vectors:
    """Unit vectors of one dimension."""

    def __init__(self, dimension: int, seed: int = 0) -> None:
        self._chance = np.random.default_rng(seed)
        shape = (DIRECTIONS, dimension)
        self._directions = self._chance.standard_normal(shape, np.float32)

    def drawn(self, count: int) -> NDArray[np.float32]:
        """Float32 [count, dimension]."""
        place = self._chance.standard_normal((count, DIRECTIONS), np.float32)
        noise = self._chance.standard_normal((count, self._directions.shape[1]), np.float32)
        vectors = place @ self._directions + _NOISE * noise
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def write_shard(
    place: Path, texts: Sequence[Text], passages: int, vectors: Vectors, threads: int
) -> ShardManifest:
    """Writes a shard of so many passages below `place`, as the builder does."""
    staging = Staging(place / "staging.sqlite")
    for start in range(0, passages, _BATCH):
        numbers = range(start, min(start + _BATCH, passages))
        for number in numbers:
            text = texts[number % len(texts)]
            staging.add(_copy(text.row, number), text.title, text.text, 0)
        drawn = vectors.drawn(len(numbers))
        staging.encoded([(number + 1, drawn[number - start]) for number in numbers])
    words = count_words(staging.words())
    staging.close()
    dimension = vectors.drawn(1).shape[1]
    identity = ShardSetIdentity("made-up", 1, dimension, "made-up", "made-up", passages, words)
    return publish_shard(staging.path, place, 0, identity, GraphPlan(threads=threads))


def _copy(row: Row, number: int) -> Row:
    passage = replace(row.passage, id=f"{row.passage.id}-{number}")
    return replace(row, passage=passage)
