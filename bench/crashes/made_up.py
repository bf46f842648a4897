"""Made-up passages: everything about one follows from its text, so that no model is needed."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, publish_shard
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage, Write
from winnow.passages.rows import Row
from winnow.text.tokenizer import Tokens

DIMENSION, VOCABULARY = 8, 64
_TITLE = (1, 2)


def tokens(text: str) -> tuple[int, ...]:
    """A token for each word."""
    return tuple(3 + sum(word.encode()) % (VOCABULARY - 3) for word in text.split())


def vector(text: str) -> np.ndarray:
    """Of norm one."""
    values = np.random.default_rng(list(text.encode())).standard_normal(DIMENSION)
    return (values / np.linalg.norm(values)).astype(np.float32)


def passage(identifier: str, text: str) -> EncodedPassage:
    """A passage as it is written."""
    ids = tokens(text)
    offsets = tuple((number, number + 1) for number in range(len(ids)))
    return EncodedPassage(
        Passage(identifier, "Title", text), _TITLE, Tokens(ids, offsets), vector(text)
    )


def write(identifier: str, text: str | None, version: int | None) -> Write:
    """A put; a deletion if there is no text."""
    return Write(identifier, version, None if text is None else passage(identifier, text))


def build(directory: Path, texts: dict[str, str]) -> Path:
    """A shard of such passages, the only one of its index."""
    with TemporaryDirectory() as aside:
        staging = Staging(Path(aside) / "staging.sqlite")
        for number, (identifier, text) in enumerate(texts.items(), start=1):
            own = passage(identifier, text)
            title = Tokens(own.title_ids, ((0, 2), (3, 5)))
            staging.add(Row(number, own.passage, "{}"), title, own.tokens, shard=0)
            staging.encoded([(number, own.vector)])
        words = count_words(staging.words())
        staging.close()
        identity = ShardSetIdentity("crashes", 1, DIMENSION, "none", "none", len(texts), words)
        publish_shard(staging.path, directory, 0, identity, GraphPlan())
    return directory / "shard-00000-of-00001"
