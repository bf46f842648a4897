"""Writes the golden shard of the present format. Run once, when the format number goes up.

`--without-graph` writes that of shards without a graph.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.shard import hnsw
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, write_shard
from winnow.domain.passage import Passage
from winnow.domain.write import Put
from winnow.passages.encoding import TokenisedPut
from winnow.text.tokenizer import Tokens

TEXTS = {"a": "First.", "b": "Zoë's café.", "c": "🎻"}
METADATA = {"a": "{}", "b": '{"year": 2010, "tags": ["x", "y"]}', "c": '{"year": "2010"}'}


def main() -> None:
    here = Path(__file__).parent
    with TemporaryDirectory() as directory:
        staging = Staging(Path(directory) / "staging.sqlite")
        for number, (identifier, text) in enumerate(TEXTS.items()):
            put = Put(Passage(identifier, "Title", text, METADATA[identifier]))
            tokens = Tokens((1, 2, 3), ((0, 3), (3, 5), (6, 10)))
            tokenised = TokenisedPut(put, Tokens((9,), ((0, 5),)), tokens)
            staging.add(tokenised.write(np.eye(8, dtype=np.float32)[number]))
        staging.partition(1)
        staging.record(done=True)
        words = count_words(staging.passage_tokens())
        staging.close()
        identity = ShardSetIdentity(
            index_id="golden",
            shards=1,
            dimension=8,
            bundle_name="golden",
            encoding_fingerprint="golden",
            passages=3,
            words=words,
        )
        if "--without-graph" in sys.argv:
            hnsw.module = None
        written = write_shard(staging.path, Path(directory), 0, identity, GraphPlan())
        target = here / f"shard-format-{written.format}"
        (Path(directory) / "shard-00000-of-00001").rename(target)


if __name__ == "__main__":
    main()
