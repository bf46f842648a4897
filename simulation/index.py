"""Builds the small index with which a simulation begins."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from simulation.models import DIMENSION, vector_of
from winnow.bundle import Bundle
from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, write_shard
from winnow.domain.passage import Passage
from winnow.domain.write import Put
from winnow.passages.encoding import tokenise
from winnow.text.tokenizer import Tokenizer

INDEX_ID = "simulated-index"


def build_index(
    bundle: Bundle, directory: Path, texts: Mapping[str, str], shards: int, *, tenants: bool = False
) -> None:
    """Writes the shards of an index of texts by stored id below `directory`.

    `tenants`: whether the index has tenants.
    """
    puts = [Put(Passage(identifier, "", text)) for identifier, text in texts.items()]
    with TemporaryDirectory() as aside:
        staging = Staging(Path(aside) / "staging.sqlite")
        for each in tokenise(Tokenizer(bundle.tokenizer), puts):
            staging.add(each.write(vector_of(each.text.ids, bundle.manifest.version)))
        words = count_words(staging.passage_tokens())
        staging.partition(shards)
        staging.record(done=True)
        staging.close()
        identity = ShardSetIdentity(
            index_id=INDEX_ID,
            shards=shards,
            dimension=DIMENSION,
            bundle_name=bundle.manifest.name,
            encoding_fingerprint=bundle.manifest.encoding_fingerprint,
            passages=len(texts),
            words=words,
            tenants=tenants,
        )
        for shard in range(shards):
            write_shard(staging.path, directory, shard, identity, GraphPlan())
