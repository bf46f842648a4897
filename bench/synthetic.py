"""Makes synthetic passages and shards, whose tokens and vectors are computed without a model."""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, write_shard
from winnow.domain.passage import Passage
from winnow.domain.question import EncodedQuestion
from winnow.domain.shard import shard_name
from winnow.domain.write import EncodedPassage, Write
from winnow.passages.encoding import pack
from winnow.text.tokenizer import Tokens

_TITLE, _TITLE_TOKENS = "Title", (1, 2)
_FIRST_WORD = 3


@dataclass(frozen=True, slots=True)
class SyntheticEncoder:
    """Encodes texts without a model: equal texts have equal tokens and vectors."""

    dimension: int
    """Length of a vector."""
    vocabulary: int
    """Number of distinct tokens."""

    def tokens(self, text: str) -> tuple[int, ...]:
        """Returns one token for each word."""
        words = self.vocabulary - _FIRST_WORD
        return tuple(_FIRST_WORD + zlib.crc32(word.encode()) % words for word in text.split())

    def vector(self, text: str) -> np.ndarray:
        """Returns a pseudo-random vector of norm one."""
        values = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(self.dimension)
        return (values / np.linalg.norm(values)).astype(np.float32)

    def question(self, text: str, bundle_fingerprint: str = "") -> EncodedQuestion:
        """Returns an encoded question."""
        return EncodedQuestion(
            text=text,
            token_ids=self.tokens(text),
            vector=self.vector(text),
            bundle_fingerprint=bundle_fingerprint,
        )

    def passage(self, identifier: str, text: str, metadata: str = "") -> EncodedPassage:
        """Returns an encoded passage; `metadata` is a JSON object, or empty."""
        offsets = tuple(word.span() for word in re.finditer(r"\S+", text))
        return pack(
            Passage(identifier, _TITLE, text, metadata),
            _TITLE_TOKENS,
            Tokens(self.tokens(text), offsets),
            self.vector(text),
        )

    def write(self, identifier: str, text: str | None, version: int | None = None) -> Write:
        """Returns a write that stores a passage, or deletes it if `text` is None."""
        return Write(identifier, version, None if text is None else self.passage(identifier, text))


def build_shard(
    directory: Path,
    passages: Iterable[EncodedPassage],
    *,
    index: str,
    dimension: int,
    bundle: str = "none",
    fingerprint: str = "none",
    ef_construction: int = 200,
    tenants: bool = False,
) -> Path:
    """Builds the only shard of an index; returns the shard's directory. See `build_shards`."""
    (shard,) = build_shards(
        directory,
        passages,
        1,
        index=index,
        dimension=dimension,
        bundle=bundle,
        fingerprint=fingerprint,
        ef_construction=ef_construction,
        tenants=tenants,
    )
    return shard


def build_shards(
    directory: Path,
    passages: Iterable[EncodedPassage],
    shards: int,
    *,
    index: str,
    dimension: int,
    bundle: str = "none",
    fingerprint: str = "none",
    ef_construction: int = 200,
    tenants: bool = False,
) -> list[Path]:
    """Builds the shards of an index; returns their directories.

    Args:
        directory: parent of the shards' directories
        passages: the passages; may be empty
        shards: number of shards
        index: id of the index
        dimension: length of a vector
        bundle: name of the bundle in the manifests
        fingerprint: encoding fingerprint of that bundle
        ef_construction: search width while the HNSW graph is built
        tenants: whether the ids of the passages name tenants

    """
    staging = Staging(directory / "staging.sqlite")
    for each in passages:
        staging.add(Write(each.passage.id, None, each))
    staging.partition(shards)
    staging.record(written=True)
    words, (count, _) = count_words(staging.passage_tokens()), staging.counts()
    staging.close()
    identity = ShardSetIdentity(
        index_id=index,
        shards=shards,
        dimension=dimension,
        bundle_name=bundle,
        encoding_fingerprint=fingerprint,
        passages=count,
        words=words,
        tenants=tenants,
    )
    plan = GraphPlan(ef_construction=ef_construction)
    for shard in range(shards):
        write_shard(staging.path, directory, shard, identity, plan)
    staging.path.unlink()
    return [directory / shard_name(shard, shards) for shard in range(shards)]
