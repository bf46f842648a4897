"""Makes the passages of many tenants, without a model: texts of frequent words, random vectors."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.synthetic import SyntheticEncoder, build_shard
from winnow.content_node.measuring.synthetic import RandomVectors
from winnow.content_node.shard.manifest import SHARD_FILE
from winnow.domain.question import EncodedQuestion
from winnow.domain.shard import shard_name
from winnow.domain.tenant import stored_id
from winnow.domain.write import EncodedPassage

DIMENSION = 384
_WORDS = 100
"""Words of a passage."""
_DISTINCT_WORDS = 20_000
_WORD_EXPONENT = 1.3
ENCODER = SyntheticEncoder(dimension=DIMENSION, vocabulary=30_000)


@dataclass(frozen=True, slots=True)
class TenantPassages:
    """The passages of one tenant."""

    name: str
    passages: list[EncodedPassage]
    vectors: NDArray[np.float32]
    """Vectors of the passages, [passages, dimension]."""

    @property
    def marker(self) -> bytes:
        """A word that only the texts of this tenant have."""
        return f"only-{self.name}-has-this".encode()


class Collection:
    """Tenants with many or few passages, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._vectors = RandomVectors(DIMENSION, seed)

    def tenant(self, name: str, passages: int) -> TenantPassages:
        """Returns a new tenant."""
        vectors = self._vectors.draw(passages)
        marker = f"only-{name}-has-this"
        made = []
        for number, vector in enumerate(vectors):
            text = f"{marker} {number} {' '.join(self._words(_WORDS))}"
            encoded = ENCODER.passage(stored_id(name, f"p{number}"), text)
            made.append(replace(encoded, vector=vector.astype("<f4").tobytes()))
        return TenantPassages(name, made, vectors)

    def question(self, tenant: str) -> EncodedQuestion:
        """Returns a question of a tenant: eight words and a random vector."""
        text = " ".join(self._words(8))
        question = ENCODER.question(text)
        return replace(question, vector=self._vectors.draw(1)[0], tenant=tenant)

    def draw_by_zipf(self, count: int, exponent: float) -> Iterator[int]:
        """Yields numbers from 0 to `count` - 1 without end, the first ones most often."""
        weights = 1.0 / np.arange(1, count + 1) ** exponent
        ends = np.cumsum(weights / weights.sum())
        while True:
            yield min(int(np.searchsorted(ends, self._chance.random())), count - 1)

    def _words(self, count: int) -> list[str]:
        numbers = self._chance.zipf(_WORD_EXPONENT, count) % _DISTINCT_WORDS
        return [f"w{number}" for number in numbers]


def build(directory: Path, tenants: list[TenantPassages], ef_construction: int = 100) -> Path:
    """Builds the only shard of an index with these tenants; returns its directory.

    A shard that was built there before is left as it is.
    """
    shard = directory / shard_name(0, 1)
    if (shard / SHARD_FILE).exists():
        return shard
    directory.mkdir(exist_ok=True)
    return build_shard(
        directory,
        [passage for tenant in tenants for passage in tenant.passages],
        index=directory.name,
        dimension=DIMENSION,
        ef_construction=ef_construction,
        tenants=True,
    )
