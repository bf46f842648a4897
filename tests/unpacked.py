"""The parts of an encoded passage, unpacked for tests."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.store import unpack_ids
from winnow.domain.write import EncodedPassage
from winnow.text.tokenizer import Tokens


def title_ids(put: EncodedPassage) -> tuple[int, ...]:
    """The token ids of a title."""
    return unpack_ids(put.title_tokens)


def tokens(put: EncodedPassage) -> Tokens:
    """The tokens of a text."""
    values = unpack_ids(put.text_offsets)
    offsets = tuple(zip(values[::2], values[1::2], strict=True))
    return Tokens(unpack_ids(put.text_tokens), offsets)


def vector(put: EncodedPassage) -> NDArray[np.float32]:
    """The vector, [dimension]."""
    return np.frombuffer(put.vector, "<f4").astype(np.float32)


def with_text_of(put: EncodedPassage, other: EncodedPassage) -> EncodedPassage:
    """A passage with the tokens of another one's text."""
    return replace(put, text_tokens=other.text_tokens, text_offsets=other.text_offsets)
