"""Winnow's encoder as an external transform of txtai, so that the systems use the same vectors.

This module runs in the processes of txtai.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import load_bundle
from winnow.inference.encoder import open_question_encoder
from winnow.packaged import default_bundle
from winnow.text.tokenizer import Tokenizer

Vector = NDArray[np.float32]
precomputed: dict[str, Vector] = {}
"""Precomputed vectors of passages by text, while an index is built."""


def transform(texts: Sequence[str]) -> NDArray[np.float32]:
    """Returns one vector for each text: precomputed for a passage, encoded for a question."""
    return np.stack(
        [precomputed[text] if text in precomputed else _encoder()(text) for text in texts]
    )


@cache
def _encoder() -> Callable[[str], Vector]:
    bundle = load_bundle(default_bundle())
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = open_question_encoder(bundle, tokenizer.special)
    return lambda text: encoder.question(tokenizer.tokenise(text).ids)
