"""Writes the token vectors of a build beside its shards.

Most are those that the encoder computed together with the vectors. The others are computed before
the shards are written, and stored like vectors, so that an interruption loses little.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from winnow.bundle import Bundle
from winnow.content_node.indexing.engine import (
    COMMIT_CHUNK,
    Encoding,
    open_encoder,
    store_encodings,
)
from winnow.content_node.indexing.plan import BuildListener
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.states.index import STAGE, open_states_model
from winnow.content_node.states.writing import StatesWriter
from winnow.domain.shard import shard_name
from winnow.inference.options import InferenceOptions
from winnow.reading.states_kind import CHECKSUM_BYTES, TOKEN_VECTORS, with_checksum

STORING = "computing token vectors"
"""The name of the stage that computes missing token vectors, as progress shows it."""
_LEVELS = "SELECT levels FROM token_vectors JOIN passages USING (seq) WHERE id = ?"
_SIZE = "SELECT length(levels) FROM token_vectors JOIN passages USING (seq) WHERE id = ?"


class StagedTokens:
    """The token vectors in the staging database of a build. Safe to use from several threads."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Several threads may share `connection`."""
        self._connection, self._lock = connection, threading.Lock()

    def packed(self, identifier: str, sequence: int) -> bytes:
        """Returns the token vectors of a passage in the format on disk; empty without any."""
        levels = self._query(_LEVELS, identifier)
        return b"" if levels is None else with_checksum(levels)

    def size(self, identifier: str, sequence: int) -> int:
        """Returns the size of the result of `packed` in bytes; 0 without token vectors."""
        size = self._query(_SIZE, identifier)
        return 0 if size is None else size + CHECKSUM_BYTES

    def _query(self, query: str, identifier: str) -> Any:
        with self._lock:
            row = self._connection.execute(query, (identifier,)).fetchone()
        return None if row is None else row[0]


def store_missing_tokens(
    staging: Staging, bundle: Bundle, threads: int, progress: BuildListener
) -> None:
    """Computes the token vectors of passages whose vectors were computed without them.

    They are passages of another index, or of an engine that returns only vectors.
    """
    chunks = staging.lacking_token_vectors(COMMIT_CHUNK)
    first = next(chunks, None)
    if first is None:
        return
    total, _ = staging.counts()
    progress.start(STORING, total, staging.count_token_vectors())
    encoder = open_encoder(bundle, threads, token_vectors=True)

    def encode(title: Sequence[int], text: Sequence[int]) -> Encoding:
        return None, encoder.token_vectors(title, text)

    with ThreadPoolExecutor(threads, thread_name_prefix="encode") as pool:
        store_encodings(staging, chain([first], chunks), encode, pool, progress.advance)


def write_token_vectors(
    staging: Path, index: Path, shards: int, bundle: Bundle, progress: BuildListener, threads: int
) -> None:
    """Writes the token vectors of all shards of a new index.

    Raises:
        ArtefactError: the encoder cannot be opened, or a shard cannot be read.
        OSError: a file cannot be written.

    """
    model = open_states_model(TOKEN_VECTORS, bundle, InferenceOptions(runs=threads))
    with contextlib.closing(sqlite3.connect(staging, check_same_thread=False)) as connection:
        staged = StagedTokens(connection)
        for shard in range(shards):
            stage = STAGE.format(noun=TOKEN_VECTORS.noun, shard=shard)
            directory = index / shard_name(shard, shards)
            writer = StatesWriter(directory, model, [staged])
            writer.write(threads, partial(progress.start, stage), progress.advance)
            (directory / TOKEN_VECTORS.lock).unlink()  # no other process knows the directory
