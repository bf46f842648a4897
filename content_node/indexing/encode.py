"""Vectors for every staged passage, with all cores.

One passage a run, so that a vector depends on its passage alone and a resumed build equals an
uninterrupted one.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from content_node.indexing.staging import Staging
from content_node.reader.prepare import MAX_TITLE_TOKENS
from winnow.bundle.manifest import EncoderEntry
from winnow.inference.encoder import Encoder

CHUNK = 1024
"""Passages between two commits: what an interruption may lose."""

SPECIAL = 3
"""Tokens around a title and a text: [CLS], [SEP], [SEP]."""


class PassageEncoder:
    """Cuts passages to what the encoder reads, and encodes them. Safe to use from threads."""

    def __init__(self, encoder: Encoder, entry: EncoderEntry) -> None:
        self._encoder, self._entry = encoder, entry

    def encode(self, title: Sequence[int], text: Sequence[int]) -> NDArray[np.float32]:
        """[dimension], from token ids without special tokens."""
        title = title[:MAX_TITLE_TOKENS]
        room = self._entry.max_passage_tokens - SPECIAL - len(title)
        return self._encoder.passage(title, text[:room], self._entry.passage_token_types)


def encode_pending(
    staging: Staging, encoder: PassageEncoder, threads: int, advance: Callable[[int], None]
) -> None:
    """Encodes what is still without a vector; calls `advance` with the passages just stored."""
    with ThreadPoolExecutor(threads, thread_name_prefix="encode") as pool:
        for chunk in staging.pending(CHUNK):
            vectors = pool.map(lambda row: encoder.encode(row[1], row[2]), chunk)
            staging.encoded([(row[0], vector) for row, vector in zip(chunk, vectors, strict=True)])
            advance(len(chunk))
