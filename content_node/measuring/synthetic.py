"""Synthetic shards of any size: repeated demo passages with random vectors.

Nothing is encoded, so a hundred thousand passages take seconds. Words and lengths are those of real
text. Vectors differ mostly in few directions, like those of texts: a graph of vectors without this
structure would be slower.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, write_shard
from winnow.domain.write import Put
from winnow.passages.encoding import TokenisedPut

DIRECTIONS = 32
"""Number of directions in which vectors differ most: an estimated 20 to 40 for encoders."""
_NOISE = 0.3
"""Standard deviation in all other directions."""
_BATCH = 4_096


class RandomVectors:
    """A generator of random unit vectors."""

    def __init__(self, dimension: int, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        shape = (DIRECTIONS, dimension)
        self._directions = self._random.standard_normal(shape, np.float32)

    def draw(self, count: int) -> NDArray[np.float32]:
        """Returns random unit vectors, float32 [count, dimension]."""
        weights = self._random.standard_normal((count, DIRECTIONS), np.float32)
        noise = self._random.standard_normal((count, self._directions.shape[1]), np.float32)
        vectors = weights @ self._directions + _NOISE * noise
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def write_synthetic_shard(
    directory: Path,
    texts: Sequence[TokenisedPut],
    passages: int,
    vectors: RandomVectors,
    threads: int,
) -> ShardManifest:
    """Writes a shard with copies of `texts` below `directory`, like the index builder."""
    staging = Staging(directory / "staging.sqlite")
    for start in range(0, passages, _BATCH):
        numbers = range(start, min(start + _BATCH, passages))
        for number, vector in zip(numbers, vectors.draw(len(numbers)), strict=True):
            staging.add(_copy(texts[number % len(texts)], number).write(vector))
    words = count_words(staging.passage_tokens())
    staging.partition(1)
    staging.record(written=True)
    staging.close()
    dimension = vectors.draw(1).shape[1]
    identity = ShardSetIdentity(
        index_id="made-up",
        shards=1,
        dimension=dimension,
        bundle_name="made-up",
        encoding_fingerprint="made-up",
        passages=passages,
        words=words,
    )
    return write_shard(staging.path, directory, 0, identity, GraphPlan(threads=threads))


def _copy(text: TokenisedPut, number: int) -> TokenisedPut:
    passage = text.put.passage
    return replace(text, put=Put(replace(passage, id=f"{passage.id}-{number}")))
