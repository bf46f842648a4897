"""Tokens of a passage to its vector.

One passage a run, so that a vector depends on its passage alone: whether it was indexed or fed,
beside whichever others, in however many threads.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.bundle.manifest import BundleEncoder
from winnow.inference.encoder import Encoder

MAX_TITLE_TOKENS = 32
"""Titles are cut here: they say what a passage is about, answers are not taken from them."""
SPECIAL = 3
"""Tokens around a title and a text: [CLS], [SEP], [SEP]."""


class PassageEncoder:
    """Cuts passages to what the encoder reads, and encodes them. Safe to use from threads."""

    def __init__(self, encoder: Encoder, entry: BundleEncoder) -> None:
        self._encoder, self._entry = encoder, entry

    def encode(self, title: Sequence[int], text: Sequence[int]) -> NDArray[np.float32]:
        """[dimension], from token ids without special tokens."""
        types = self._entry.passage_token_types
        return self._encoder.passage(title[:MAX_TITLE_TOKENS], text[: self._room(title)], types)

    def truncates(self, title: Sequence[int], text: Sequence[int]) -> bool:
        """Whether the text has more tokens than the encoder reads of it."""
        return len(text) > self._room(title)

    def _room(self, title: Sequence[int]) -> int:
        """Tokens of a text that are read beside a title."""
        return self._entry.max_passage_tokens - SPECIAL - min(len(title), MAX_TITLE_TOKENS)
