"""Synthetic writes to a shard."""

import numpy as np

from winnow.content_node.live.log_entry import LoggedWrite
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage, Write
from winnow.passages.canonical import PassageDigest, digest
from winnow.passages.encoding import pack
from winnow.text.tokenizer import Tokens

DIMENSION = 8


def encoded(identifier: str, text: str = "some words", metadata: str = "") -> EncodedPassage:
    """Returns a passage with one token for each word, and a vector that follows from its text."""
    words = text.split(" ")
    ends = np.cumsum([len(word) + 1 for word in words]).tolist()
    offsets = tuple((end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True))
    ids = tuple(1 + sum(word.encode()) % 200 for word in words)
    rng = np.random.default_rng(list(text.encode()))
    vector = rng.standard_normal(DIMENSION).astype(np.float32)
    return pack(
        Passage(identifier, "Title", text, metadata),
        (7, 8),
        Tokens(ids, offsets),
        (vector / np.linalg.norm(vector)).astype(np.float32),
    )


def put(identifier: str, text: str = "some words", version: int | None = None) -> Write:
    """Returns a write that stores a passage."""
    return Write(identifier, version, encoded(identifier, text))


def digested(write: Write) -> PassageDigest:
    """Returns the digest of a write that stores a passage."""
    assert write.put is not None
    return PassageDigest(write.id, write.version, digest(write.put.passage))


def delete(identifier: str, version: int | None = None) -> Write:
    """Returns a write that deletes a passage."""
    return Write(identifier, version)


def logged(
    sequence: int,
    identifier: str = "",
    text: str | None = "some words",
    version: int | None = None,
    removed_words: bytes | None = None,
) -> LoggedWrite:
    """Returns a log entry of a write; of a deletion if `text` is None."""
    identifier = identifier or f"id-{sequence}"
    stored = None if text is None else encoded(identifier, text)
    return LoggedWrite(
        sequence=sequence, id=identifier, version=version, put=stored, removed_words=removed_words
    )
