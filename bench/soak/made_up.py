"""A shard of made-up passages and an endless stream of writes to it; no text is encoded."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.feeding import made_up
from winnow.bundle import Bundle
from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, publish_shard
from winnow.domain.layout import shard_name
from winnow.domain.write import EncodedPassage, Write
from winnow.passages.rows import Row
from winnow.text.tokenizer import Tokens

INDEX = "soak"
_POOL = 1_000
"""Passages that writes are drawn from."""
_NEW = 0.25
"""Most passages that writes add, as a share of those of the shard."""


def make_shard(directory: Path, bundle: Bundle, passages: int) -> Path:
    """Builds the only shard of an index; a minute for 20,000 passages."""
    staging = Staging(directory / "staging.sqlite")
    for number, write in enumerate(made_up(passages), start=1):
        assert write.put is not None
        title = Tokens(write.put.title_ids, ((0, 5),))
        staging.add(Row(number, write.put.passage, "{}"), title, write.put.tokens, shard=0)
        staging.encoded([(number, write.put.vector)])
    words = count_words(staging.words())
    staging.close()
    fingerprint = bundle.manifest.encoding_fingerprint
    dimension = bundle.manifest.encoder.dimension
    identity = ShardSetIdentity(
        INDEX, 1, dimension, bundle.manifest.name, fingerprint, passages, words
    )
    publish_shard(staging.path, directory, 0, identity, GraphPlan(ef_construction=100))
    staging.path.unlink()
    return directory / shard_name(0, 1)


def writes(passages: int, seed: int) -> Iterator[Write]:
    """Writes for ever: half of them replace passages, and the others add and delete some, so that
    the shard stays about as large as it is.
    """
    chance = random.Random(seed)
    pool = [each.put for each in made_up(_POOL) if each.put is not None]
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
