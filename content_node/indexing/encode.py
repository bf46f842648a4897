"""Vectors for every staged passage, with all cores.

A vector depends on its passage alone, so a resumed build equals an uninterrupted one.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from content_node.indexing.staging import Staging
from winnow.passages.encoding import PassageEncoder

CHUNK = 1024
"""Passages between two commits: what an interruption may lose."""


def encode_pending(
    staging: Staging, encoder: PassageEncoder, threads: int, advance: Callable[[int], None]
) -> None:
    """Encodes what is still without a vector; calls `advance` with the passages just stored."""
    with ThreadPoolExecutor(threads, thread_name_prefix="encode") as pool:
        for chunk in staging.pending(CHUNK):
            vectors = pool.map(lambda row: encoder.encode(row[1], row[2]), chunk)
            staging.encoded([(row[0], vector) for row, vector in zip(chunk, vectors, strict=True)])
            advance(len(chunk))
