"""Made-up passages: everything about one follows from its text, so that no model is needed."""

import numpy as np

from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage, Write
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
