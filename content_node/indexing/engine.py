"""Encodes the passages of a build: by threads of this process, or by another engine.

A vector depends only on its passage, so a resumed build equals an uninterrupted one.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.content_node.indexing.plan import BuildListener
from winnow.content_node.indexing.staging import StagedTokenIds, Staging
from winnow.deadline import Clock
from winnow.inference.encoder import open_passage_encoder
from winnow.inference.options import InferenceOptions
from winnow.passages.encoding import PassageEncoder
from winnow.text.tokenizer import Tokenizer

ENCODING = "encoding passages"
"""The name of the stage, as progress shows it."""
COMMIT_CHUNK = 1024
"""Maximum number of passages between two commits."""
COMMIT_SECONDS = 2.0
"""Maximum seconds between two commits. A kill loses the work since the last one; an exception loses
nothing.
"""
Encoding = tuple[NDArray[np.float32] | None, NDArray[np.int8] | None]
"""The vector of a passage, and the levels of its token vectors; None for what was not computed."""
Encode = Callable[[Sequence[int], Sequence[int]], Encoding]
"""Encodes the token ids of the title and the text of a passage. Called by several threads."""
_Encoded = tuple[int, *Encoding]
"""The sequence number of a passage, and its encoding."""


class Engine(Protocol):
    """Encodes passages. All engines give the same vectors, bit for bit."""

    def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
        """Stores a vector for every passage that has none yet; stored vectors survive a failure."""


class LocalEngine:
    """Encodes passages by threads of this process."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
        """Stores a vector for every passage that has none yet."""
        progress.start(ENCODING, *staging.counts())
        encoder = open_encoder(bundle, self._threads, token_vectors=True)
        encode_pending(staging, encoder, self._threads, progress.advance)


def open_encoder(bundle: Bundle, runs: int = 1, *, token_vectors: bool = False) -> PassageEncoder:
    """Opens the passage encoder of a bundle for `runs` concurrent runs.

    `token_vectors`: whether it returns token vectors, too, if the bundle has late interaction.
    """
    special = Tokenizer(bundle.tokenizer).special
    options = InferenceOptions(runs=runs)
    model = open_passage_encoder(bundle, special, options, token_vectors=token_vectors)
    return PassageEncoder(model, bundle.manifest.encoder)


def encode_pending(
    staging: Staging,
    encoder: PassageEncoder,
    threads: int,
    advance: Callable[[int], None],
    clock: Clock = time.monotonic,
) -> None:
    """Encodes passages without a vector; calls `advance` with the number of each stored batch."""
    chunks = staging.pending(COMMIT_CHUNK)
    with ThreadPoolExecutor(threads, thread_name_prefix="encode") as pool:
        store_encodings(staging, chunks, encoder.encode_with_tokens, pool, advance, clock)


def store_encodings(
    staging: Staging,
    chunks: Iterable[Sequence[StagedTokenIds]],
    encode: Encode,
    pool: ThreadPoolExecutor,
    advance: Callable[[int], None],
    clock: Clock = time.monotonic,
) -> None:
    """Encodes passages in a pool; calls `advance` with the number of each stored batch."""
    for chunk in chunks:
        futures = [pool.submit(encode, title, text) for _, title, text in chunk]
        encoded = ((row[0], *future.result()) for row, future in zip(chunk, futures, strict=True))
        try:
            _store_encoded(staging, encoded, advance, clock)
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def _store_encoded(
    staging: Staging, vectors: Iterable[_Encoded], advance: Callable[[int], None], clock: Clock
) -> None:
    """Stores vectors every few seconds, and the rest even after an exception."""
    unstored: list[_Encoded] = []
    committed_at = clock()
    try:
        for vector in vectors:
            unstored.append(vector)
            if clock() - committed_at >= COMMIT_SECONDS:
                batch, unstored = unstored, []
                _store_batch(staging, batch)
                advance(len(batch))
                committed_at = clock()
    finally:
        if unstored:
            _store_batch(staging, unstored)
            advance(len(unstored))


def _store_batch(staging: Staging, batch: Sequence[_Encoded]) -> None:
    staging.store_vectors(
        [(number, vector) for number, vector, _ in batch if vector is not None],
        [(number, levels.tobytes()) for number, _, levels in batch if levels is not None],
    )
