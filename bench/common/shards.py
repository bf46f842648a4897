"""A shard that is made of encoded passages, without a model."""

from collections.abc import Sequence
from pathlib import Path

from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, publish_shard
from winnow.domain.shard import shard_name
from winnow.domain.write import EncodedPassage
from winnow.passages.rows import Row
from winnow.text.tokenizer import Tokens


def build_shard(
    directory: Path,
    passages: Sequence[EncodedPassage],
    *,
    index: str,
    dimension: int,
    bundle: str = "none",
    fingerprint: str = "none",
    ef_construction: int = 200,
) -> Path:
    """Writes the only shard of an index; returns its directory.

    Args:
        directory: where the shard's directory is made
        passages: what the shard holds; may be empty
        index: id of the index
        dimension: of the vectors
        bundle: name of the bundle that the manifest names
        fingerprint: of that bundle's encoding
        ef_construction: of the graph

    """
    staging = Staging(directory / "staging.sqlite")
    for number, each in enumerate(passages, start=1):
        title = Tokens(each.title_ids, tuple((n, n + 1) for n in range(len(each.title_ids))))
        staging.add(Row(number, each.passage, "{}"), title, each.tokens, shard=0)
        staging.encoded([(number, each.vector)])
    words = count_words(staging.words())
    staging.close()
    identity = ShardSetIdentity(index, 1, dimension, bundle, fingerprint, len(passages), words)
    publish_shard(staging.path, directory, 0, identity, GraphPlan(ef_construction=ef_construction))
    staging.path.unlink()
    return directory / shard_name(0, 1)
