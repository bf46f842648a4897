"""Vectors for every staged passage, with all cores.

A vector depends on its passage alone, so a resumed build equals an uninterrupted one.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.indexing.staging import Staging
from winnow.deadline import Clock
from winnow.passages.encoding import PassageEncoder

CHUNK = 1024
"""Passages between two commits, at most."""
SECONDS = 2.0
"""Seconds between two commits, at most: what a kill may lose. An exception loses nothing."""
Vector = tuple[int, NDArray[np.float32]]
"""Of the passage with this number."""


def encode_pending(
    staging: Staging,
    encoder: PassageEncoder,
    threads: int,
    advance: Callable[[int], None],
    clock: Clock = time.monotonic,
) -> None:
    """Encodes what is still without a vector; calls `advance` with the passages just stored."""
    with ThreadPoolExecutor(threads, thread_name_prefix="encode") as pool:
        for chunk in staging.pending(CHUNK):
            futures = [pool.submit(encoder.encode, title, text) for _, title, text in chunk]
            vectors = (
                (row[0], future.result()) for row, future in zip(chunk, futures, strict=True)
            )
            try:
                _store(staging, vectors, advance, clock)
            except BaseException:
                for future in futures:
                    future.cancel()
                raise


def _store(
    staging: Staging, vectors: Iterable[Vector], advance: Callable[[int], None], clock: Clock
) -> None:
    """Stores vectors as they come, every few seconds; those that came are stored in any case."""
    waiting: list[Vector] = []
    since = clock()
    try:
        for vector in vectors:
            waiting.append(vector)
            if clock() - since >= SECONDS:
                stored, waiting = waiting, []
                staging.encoded(stored)
                advance(len(stored))
                since = clock()
    finally:
        if waiting:
            staging.encoded(waiting)
            advance(len(waiting))
