"""Unpacks the parts of an encoded passage."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.store import unpack_ids
from winnow.domain.write import EncodedPassage
from winnow.text.tokenizer import Tokens


def title_ids(put: EncodedPassage) -> tuple[int, ...]:
    """Returns the token ids of the title."""
    return unpack_ids(put.title_tokens)


def tokens(put: EncodedPassage) -> Tokens:
    """Returns the tokens of the text."""
    values = unpack_ids(put.text_offsets)
    offsets = tuple(zip(values[::2], values[1::2], strict=True))
    return Tokens(unpack_ids(put.text_tokens), offsets)


def vector(put: EncodedPassage) -> NDArray[np.float32]:
    """Returns the vector, float32 [dimension]."""
    return np.frombuffer(put.vector, "<f4").astype(np.float32)


def with_text_of(put: EncodedPassage, other: EncodedPassage) -> EncodedPassage:
    """Returns the passage with the text tokens of `other`."""
    return replace(put, text_tokens=other.text_tokens, text_offsets=other.text_offsets)
