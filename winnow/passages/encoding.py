"""Passages to tokens, and tokens to vectors: the same for building and feeding.

One passage is encoded in each run, so that a vector depends on its passage alone. It does not
depend on the other passages, on the number of threads, or on whether it was built or fed.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from winnow.bundle.manifest import BundleEncoder
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage, Put, Write
from winnow.inference.encoder import Encoder
from winnow.text.tokenizer import Tokenizer, Tokens

MAX_TITLE_TOKENS = 32
"""Tokens of a title that are read: it says what a passage is about, and holds no answers."""
SPECIAL = 3
"""Tokens around a title and a text: [CLS], [SEP], [SEP]."""


@dataclass(frozen=True, slots=True)
class TokenisedPut:
    """A valid passage and its tokens."""

    put: Put
    title: Tokens
    text: Tokens

    def write(self, vector: NDArray[np.float32] | None = None) -> Write:
        """The write that stores the passage; its vector is empty if it is not encoded yet."""
        passage = self.put.passage
        encoded = pack(passage, self.title.ids, self.text, vector)
        return Write(passage.id, self.put.version, encoded)


def tokenise(tokenizer: Tokenizer, puts: Sequence[Put]) -> Iterator[TokenisedPut]:
    """Each passage with its tokens."""
    titles = tokenizer.tokenise_many([put.passage.title for put in puts])
    texts = tokenizer.tokenise_many([put.passage.text for put in puts])
    return map(TokenisedPut, puts, titles, texts)


def pack(
    passage: Passage, title: Sequence[int], text: Tokens, vector: NDArray[np.float32] | None = None
) -> EncodedPassage:
    """A passage with its token ids and its vector as it travels and is stored."""
    return EncodedPassage(
        passage=passage,
        title_tokens=pack_ids(title),
        text_tokens=pack_ids(text.ids),
        text_offsets=pack_ids(tuple(chain.from_iterable(text.offsets))),
        vector=b"" if vector is None else np.ascontiguousarray(vector, "<f4").tobytes(),
    )


def pack_ids(values: Sequence[int]) -> bytes:
    """Integers as little-endian uint32."""
    # three times as fast as through an array
    return struct.pack(f"<{len(values)}I", *values)


class PassageEncoder:
    """Cuts passages to the tokens that the encoder reads, and encodes them. Thread-safe."""

    def __init__(self, encoder: Encoder, entry: BundleEncoder) -> None:
        self._encoder, self._entry = encoder, entry

    def encode(self, title: Sequence[int], text: Sequence[int]) -> NDArray[np.float32]:
        """The vector [dimension] of token ids without special tokens."""
        types = self._entry.passage_token_types
        return self._encoder.passage(title[:MAX_TITLE_TOKENS], text[: self._room(title)], types)

    def truncates(self, title: Sequence[int], text: Sequence[int]) -> bool:
        """Whether the text has more tokens than the encoder reads of it."""
        return len(text) > self._room(title)

    def _room(self, title: Sequence[int]) -> int:
        """Tokens of a text that are read beside a title."""
        return self._entry.max_passage_tokens - SPECIAL - min(len(title), MAX_TITLE_TOKENS)
