"""Tokenises and encodes passages, for building and for feeding.

Each run of the encoder encodes one passage, so a vector depends neither on other passages nor on
the number of threads.
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
"""Limit of tokens of a title. Further tokens are ignored, since titles hold no answers."""
SPECIAL = 3
"""Number of special tokens around a title and a text: [CLS], [SEP], [SEP]."""


@dataclass(frozen=True, slots=True)
class TokenisedPut:
    """A valid passage and its tokens."""

    put: Put
    title: Tokens
    text: Tokens

    def write(self, vector: NDArray[np.float32] | None = None) -> Write:
        """Returns the write that stores the passage. Without `vector`, its vector is empty."""
        passage = self.put.passage
        encoded = pack(passage, self.title.ids, self.text, vector)
        return Write(passage.id, self.put.version, encoded)


def tokenise(tokenizer: Tokenizer, puts: Sequence[Put]) -> Iterator[TokenisedPut]:
    """Tokenises the titles and texts of passages."""
    titles = tokenizer.tokenise_many([put.passage.title for put in puts])
    texts = tokenizer.tokenise_many([put.passage.text for put in puts])
    return map(TokenisedPut, puts, titles, texts)


def pack(
    passage: Passage, title: Sequence[int], text: Tokens, vector: NDArray[np.float32] | None = None
) -> EncodedPassage:
    """Packs a passage, its tokens and its vector into the form of messages and shards."""
    return EncodedPassage(
        passage=passage,
        title_tokens=pack_ids(title),
        text_tokens=pack_ids(text.ids),
        text_offsets=pack_ids(tuple(chain.from_iterable(text.offsets))),
        vector=b"" if vector is None else np.ascontiguousarray(vector, "<f4").tobytes(),
    )


def pack_ids(values: Sequence[int]) -> bytes:
    """Packs integers as little-endian uint32."""
    # three times as fast as with an array
    return struct.pack(f"<{len(values)}I", *values)


def count_encoded_tokens(entry: BundleEncoder, title: Sequence[int], text: Sequence[int]) -> int:
    """Returns the number of tokens of a passage that an encoder encodes, with special tokens."""
    return sum(map(len, _truncated(entry, title, text))) + SPECIAL


def _truncated(
    entry: BundleEncoder, title: Sequence[int], text: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    return title[:MAX_TITLE_TOKENS], text[: _max_text_tokens(entry, title)]


def _max_text_tokens(entry: BundleEncoder, title: Sequence[int]) -> int:
    return entry.max_passage_tokens - SPECIAL - min(len(title), MAX_TITLE_TOKENS)


class PassageEncoder:
    """Truncates passages to the length that the encoder accepts, and encodes them. Thread-safe."""

    def __init__(self, encoder: Encoder, entry: BundleEncoder) -> None:
        self._encoder, self._entry = encoder, entry

    def encode(self, title: Sequence[int], text: Sequence[int]) -> NDArray[np.float32]:
        """Encodes token ids, given without special tokens; returns a vector [dimension]."""
        types = self._entry.passage_token_types
        return self._encoder.passage(*_truncated(self._entry, title, text), types)

    def encode_with_tokens(
        self, title: Sequence[int], text: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.int8] | None]:
        """Returns the vector and, if the encoder has token vectors, their levels, in one run.

        The arguments are those of `encode`.
        """
        types = self._entry.passage_token_types
        return self._encoder.passage_with_tokens(*_truncated(self._entry, title, text), types)

    def token_vectors(self, title: Sequence[int], text: Sequence[int]) -> NDArray[np.int8]:
        """Returns the levels of the token vectors, [`count_tokens`, values].

        The arguments are those of `encode`. The encoder must have token vectors.
        """
        types = self._entry.passage_token_types
        return self._encoder.passage_tokens(*_truncated(self._entry, title, text), types)

    def count_tokens(self, title: Sequence[int], text: Sequence[int]) -> int:
        """Returns the number of encoded tokens, with special tokens."""
        return count_encoded_tokens(self._entry, title, text)

    def truncates(self, title: Sequence[int], text: Sequence[int]) -> bool:
        """Returns whether the text has more tokens than the encoder accepts beside the title."""
        return len(text) > _max_text_tokens(self._entry, title)
