"""A shard of made-up passages and an endless stream of writes to it; no text is encoded."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.common.shards import build_shard
from winnow.bundle import Bundle
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage, Write
from winnow.text.tokenizer import Tokens

INDEX = "soak"
_DIMENSION, _VOCABULARY = 384, 30_522
_TOKENS, _CHARACTERS = 130, 600
"""Of a passage: as many as 100 words have."""
_POOL = 1_000
"""Passages that writes are drawn from."""
_NEW = 0.25
"""Most passages that writes add, as a share of those of the shard."""


def make_shard(directory: Path, bundle: Bundle, passages: int) -> Path:
    """Builds the only shard of an index; a minute for 20,000 passages."""
    return build_shard(
        directory,
        encoded(passages),
        index=INDEX,
        dimension=_DIMENSION,
        bundle=bundle.manifest.name,
        fingerprint=bundle.manifest.encoding_fingerprint,
        ef_construction=100,
    )


def encoded(count: int) -> list[EncodedPassage]:
    """Passages whose words are about as rare as those of texts, encoded by random vectors."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((count, _DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = np.minimum(1_000 + rng.zipf(1.2, (count, _TOKENS)), _VOCABULARY - 1)
    ends = np.linspace(4, _CHARACTERS, _TOKENS).astype(int).tolist()
    offsets = tuple((end - 4, end) for end in ends)
    return [
        EncodedPassage(
            Passage(f"passage-{n}", "Title", f"{n} ".ljust(_CHARACTERS, "x")),
            (2_516,),
            Tokens(tuple(ids[n].tolist()), offsets),
            vectors[n],
        )
        for n in range(count)
    ]


def writes(passages: int, seed: int) -> Iterator[Write]:
    """Writes for ever: half of them replace passages, and the others add and delete some, so that
    the shard stays about as large as it is.
    """
    chance = random.Random(seed)
    pool = encoded(_POOL)
    noise = np.random.default_rng(seed)
    while True:
        put = _moved(chance.choice(pool), noise)
        kind = chance.random()
        if kind < 0.5:
            name = f"passage-{chance.randrange(passages)}"
        else:
            name = f"fed-{chance.randrange(int(passages * _NEW))}"
        if kind > 0.75:
            yield Write(name, None, None)
        else:
            passage = replace(put.passage, id=name, metadata=f'{{"n": {chance.randrange(99)}}}')
            yield Write(name, None, replace(put, passage=passage))


def _moved(put: EncodedPassage, noise: np.random.Generator) -> EncodedPassage:
    moved = put.vector + noise.standard_normal(len(put.vector)).astype(np.float32) / 20
    return replace(put, vector=moved / np.linalg.norm(moved))
